import Foundation
import Testing

@testable import KapePlatform

@Suite("§11: status.json") struct SharedStatusFileTests {
  private let folder: ScratchFolder
  private let container: SharedContainer
  private let file: SharedStatusFile

  init() throws {
    let made = try ScratchFolder()
    folder = made
    container = try SharedContainer(group: "g", home: nil) { $0 == "KAPE_STATE_HOME" ? made.path : nil }
    file = SharedStatusFile(container)
  }

  private let full = SharedTunnelStatus(
    .paused, lastError: .startDeadlinePassed(lastError: .network("no route")), cause: .startDeadlinePassed,
    connectedSince: Date(timeIntervalSince1970: 1_700_000_000), pausedUntil: Date(timeIntervalSince1970: 1_700_000_600),
    protocolDescription: "WireGuard", locationId: "fr-paris")

  @Test("what the tunnel writes the app reads; the file is for the owner alone")
  func roundTrip() async throws {
    #expect(file.load() == nil)
    try await file.write(full)
    #expect(SharedStatusFile(container).load() == full)
    #expect(try folder.mode("g/status.json") == 0o600)
    try await file.clear()
    #expect(file.load() == nil)
    try await file.clear()
    #expect(try FileManager.default.contentsOfDirectory(atPath: container.path) == [])
  }

  @Test("a file without a status is none; another value that cannot be read is one that was not said")
  func tolerance() async throws {
    for text in ["", "{", "[]", "null", "{}", #"{"status": "flying"}"#, #"{"status": 1}"#] {
      try folder.write("g/status.json", text)
      #expect(file.load() == nil, "\(text)")
    }
    try folder.write(
      "g/status.json",
      """
      {"status": "connected", "lastError": {"invented": {}}, "cause": "boredom", "connectedSince": "noon",
       "locationId": 4, "more": []}
      """)
    #expect(file.load() == SharedTunnelStatus(.connected))
    try await file.write(full)
    #expect(file.load() == full)
  }

  @Test("changes of one process are made one after the other: none is lost")
  func concurrency() async throws {
    try await withThrowingTaskGroup { group in
      for _ in 0..<50 {
        group.addTask { [file] in
          try await file.update { old in
            SharedTunnelStatus(.connected, locationId: String((old?.locationId.flatMap(Int.init) ?? 0) + 1))
          }
        }
      }
      for try await _ in group {}
    }
    #expect(file.load()?.locationId == "50")
  }

  @Test("nothing is written when it stays the same: who watches the folder is not woken")
  func noChange() async throws {
    func number() throws -> Int? {
      try FileManager.default.attributesOfItem(atPath: container.status)[.systemFileNumber] as? Int
    }
    try await file.write(full)
    let before = try number()
    try await file.write(full)
    #expect(try number() == before)
    try await file.write(SharedTunnelStatus(.connected))
    #expect(try number() != before)
  }

  @Test("a folder that cannot be written to is an error, and what was there stays")
  func unwritable() async throws {
    try folder.write("g", "a file where the folder should be")
    await #expect(throws: (any Error).self) { try await file.write(full) }
    #expect(file.load() == nil)
  }
}
