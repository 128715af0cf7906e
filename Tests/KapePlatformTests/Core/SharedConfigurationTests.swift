import Foundation
import Testing

@testable import KapePlatform

@Suite("§11, §16: config.json") struct SharedConfigurationTests {
  private let folder: ScratchFolder
  private let container: SharedContainer

  init() throws {
    let made = try ScratchFolder()
    folder = made
    container = try SharedContainer(group: "g", home: nil) { $0 == "KAPE_STATE_HOME" ? made.path : nil }
  }

  @Test("missing or corrupt means defaults; a key of another type is not said")
  func tolerance() throws {
    #expect(SharedConfiguration.load(container) == SharedConfiguration())
    for text in ["", "{", "[1]", "null", #"{"deviceModel": 7}"#] {
      try folder.write("g/config.json", text)
      #expect(SharedConfiguration.load(container).deviceModel == nil)
    }
  }

  @Test("a change keeps what it does not know, is for the owner alone, and leaves no scratch file")
  func change() async throws {
    try folder.write("g/config.json", #"{"later": {"a": [1, 2.5, true, null]}, "deviceModel": 7}"#)
    try await SharedConfiguration.update(container) { $0.deviceModel = "tablet" }
    let read = SharedConfiguration.load(container)
    #expect(read.deviceModel == "tablet")
    #expect(read.values["later"] == .object(["a": .array([.number(1), .number(2.5), .bool(true), .null])]))
    #expect(try folder.mode("g/config.json") == 0o600)
    let names = try FileManager.default.contentsOfDirectory(atPath: container.path).sorted()
    #expect(names == [".config.lock", "config.json"])
  }

  @Test("many changes at once: none is lost")
  func concurrency() async throws {
    try await withThrowingTaskGroup { group in
      for index in 0..<50 {
        group.addTask { [container] in
          try await SharedConfiguration.update(container) { $0.values["k\(index)"] = .number(Double(index)) }
        }
      }
      for try await _ in group {}
    }
    #expect(SharedConfiguration.load(container).values.count == 50)
  }

  @Test("nothing is written when nothing changes: who watches the folder is not woken")
  func noChange() async throws {
    try await SharedConfiguration.update(container) { $0.deviceModel = "mobile" }
    let before = try FileManager.default.attributesOfItem(atPath: container.configuration)[.systemFileNumber] as? Int
    try await SharedConfiguration.update(container) { $0.deviceModel = "mobile" }
    let after = try FileManager.default.attributesOfItem(atPath: container.configuration)[.systemFileNumber] as? Int
    #expect(before == after && before != nil)
  }
}
