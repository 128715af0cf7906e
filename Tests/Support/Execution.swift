import Foundation

/// A program's exit status and output.
public struct Execution: Sendable {
  public let status: Int32
  public let output: [UInt8]
  public let errors: String

  public var text: String { String(decoding: output, as: UTF8.self) }

  /// Runs it to its end, in the C locale.
  public static func run(_ command: [String], input: [UInt8] = [], environment: [String: String] = [:]) throws
    -> Execution
  {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = command
    process.environment = ProcessInfo.processInfo.environment.merging(
      ["WG_ENDPOINT_RESOLUTION_RETRIES": "0", "LC_ALL": "C"].merging(environment) { $1 }
    ) { $1 }
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: directory) }
    let paths = ["in", "out", "err"].map { directory.appendingPathComponent($0) }
    try Data(input).write(to: paths[0])
    for path in paths[1...] { try Data().write(to: path) }
    process.standardInput = try FileHandle(forReadingFrom: paths[0])
    process.standardOutput = try FileHandle(forWritingTo: paths[1])
    process.standardError = try FileHandle(forWritingTo: paths[2])
    try process.run()
    process.waitUntilExit()
    return Execution(
      status: process.terminationStatus, output: Array(try Data(contentsOf: paths[1])),
      errors: String(decoding: try Data(contentsOf: paths[2]), as: UTF8.self))
  }

  /// The program that is built beside the tests.
  public static var program: String {
    let directory = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
    return directory.appendingPathComponent("kape").path
  }

  /// Runs `program`.
  public static func kape(_ arguments: [String], input: [UInt8] = [], environment: [String: String] = [:]) throws
    -> Execution
  {
    try run([program] + arguments, input: input, environment: environment)
  }
}
