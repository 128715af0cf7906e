import Glibc

/// Exit codes that scripts can rely on.
package enum ExitCode: Int32, Sendable {
  case done = 0
  case failed = 1
  /// The command line or a configuration is wrong.
  case usage = 2
  /// A privilege, a package or a device is missing.
  case missing = 3
  /// The name is in use by another process.
  case inUse = 4
}

/// One verb of the program, in a file of its own.
package protocol Command: Sendable {
  static var name: String { get }
  /// One line for the overview.
  static var summary: String { get }
  /// The whole of `kape NAME --help`; fits a screen, which is 40 lines of 120 columns.
  static var help: String { get }
  static var syntax: CommandSyntax { get }
  /// `--help` goes to `run` like any other argument.
  static var answersHelp: Bool { get }
  /// `arguments` come without the program's name and the verb.
  static func run(_ arguments: [String]) async -> ExitCode
}

extension Command {
  package static var answersHelp: Bool { false }

  /// For a command line that makes no sense.
  package static func usage(_ arguments: [String]) -> ExitCode {
    if let fault = syntax.fault(in: arguments) { Console.error("\(name): \(fault)") }
    let first = help.split(separator: "\n", maxSplits: 1).first ?? ""
    Console.write("\(first)\n'kape \(name) --help' says more.\n", to: STDERR_FILENO)
    return .usage
  }
}
