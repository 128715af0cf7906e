import Foundation
import KapeTestSupport
import Testing

@Suite("§16: user defaults reach the other process") struct SharedDefaultsTests {
  private let home: ScratchFolder
  private let plist: String

  init() throws {
    home = try ScratchFolder()
    plist = try home.write(
      "KapeSDK.plist",
      plist: documentedValues().merging(
        ["AppGroupIdentifier": "group.example.defaults"]) { $1 })
  }

  private func run(_ steps: [String], input: String = "") throws -> Execution {
    try Execution.run(
      [probe, "defaults", plist] + steps, input: Array(input.utf8),
      environment: ["HOME": home.path, "XDG_CONFIG_HOME": home.path + "/config"])
  }

  @Test("a value that was set before settings were made is on the disk afterwards")
  func makingSettingsWrites() throws {
    #expect(try run(["set=Staging", "settings"]).status == 0)
    #expect(try run(["get"]).text == "Staging\n")
  }

  @Test("one that was set later is at exit")
  func exitWrites() throws {
    #expect(try run(["settings", "set=Staging"]).status == 0)
    #expect(try run(["get"]).text == "Staging\n")
  }

  @Test("without any object of the SDK it is not, which is why the documentation asks for synchronize()")
  func withoutTheSDK() throws {
    #expect(try run(["set=Staging"]).status == 0)
    #expect(try run(["get"]).text == "nothing\n")
  }

  @Test("a process that goes on sees another's value once it makes settings anew")
  func freshCopy() async throws {
    _ = try run(["set=Old", "settings"])
    let process = Process()
    let (input, output) = (Pipe(), Pipe())
    process.executableURL = URL(fileURLWithPath: probe)
    process.arguments = ["defaults", plist, "get", "wait", "get", "settings", "get"]
    process.environment = ProcessInfo.processInfo.environment.merging(
      ["HOME": home.path, "XDG_CONFIG_HOME": home.path + "/config"]) { $1 }
    process.standardInput = input
    process.standardOutput = output
    try process.run()
    var text = ""
    while !text.hasSuffix("waiting\n") {
      text += String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
    }
    _ = try run(["set=New", "settings"])
    try input.fileHandleForWriting.write(contentsOf: Data("\n".utf8))
    try input.fileHandleForWriting.close()
    text += String(decoding: try output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
    process.waitUntilExit()
    #expect(text == "Old\nwaiting\nOld\nNew\n")
  }
}
