import Glibc

/// Exit codes that scripts can rely on.
enum ExitCode: Int32 {
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
protocol Command: Sendable {
  static var name: String { get }
  /// One line for the overview.
  static var summary: String { get }
  /// The whole of `kape NAME --help`; fits a screen, which is 40 lines of 120 columns.
  static var help: String { get }
  static var syntax: CommandSyntax { get }
  /// `arguments` come without the program's name and the verb.
  static func run(_ arguments: [String]) async -> ExitCode
}

extension Command {
  /// For a command line that makes no sense.
  static func usage(_ arguments: [String]) -> ExitCode {
    if let fault = syntax.fault(in: arguments) { Console.error("\(name): \(fault)") }
    let first = help.split(separator: "\n", maxSplits: 1).first ?? ""
    Console.write("\(first)\n'kape \(name) --help' says more.\n", to: STDERR_FILENO)
    return .usage
  }
}

/// Every verb, in the order of the overview.
let commands: [any Command.Type] = [
  WgCommand.self,
  UpCommand.self,
  DownCommand.self,
  StatusCommand.self,
  SaveCommand.self,
  CheckCommand.self,
  StripCommand.self,
  GenkeyCommand.self,
  PubkeyCommand.self,
  GenpskCommand.self,
  SelftestCommand.self,
]
