import Glibc
import KapeCommandLine
import KapeControl

struct SaveCommand: Command {
  static let name = "save"
  static let summary = "write a running tunnel's configuration back to its file"
  static let help = """
    usage: kape save NAME | FILE

    Writes the present configuration of a tunnel of 'kape up' over the file that it came from: peers, keys and port as
    they are now, addresses and MTU as the interface has them, and what the file said of the rest. Endpoints that the
    file gave by name keep it. Comments are lost.

    exit status: 0 done; 1 failed; 2 usage

    """
  static let syntax = CommandSyntax(operands: 1...1)

  static func run(_ arguments: [String]) async -> ExitCode {
    guard syntax.fault(in: arguments) == nil, let argument = arguments.first else { return usage(arguments) }
    let name: String
    do {
      name = try RunningTunnel.name(argument)
    } catch {
      Console.error(error.description)
      return .usage
    }
    do throws(ControlConnection.Failure) {
      let code = try ControlConnection.ask(name, .save, out: { Console.out($0) }, error: { Console.error($0) })
      return ExitCode(rawValue: code) ?? .failed
    } catch {
      if let code = RunningTunnel.refused() { return code }
      Console.error(
        RunDirectory.holder(of: name) == nil ? "\(name): 'kape up' runs no tunnel of that name" : "\(name): \(error)")
      return .failed
    }
  }
}

/// What stands on the command line for a tunnel that runs.
enum RunningTunnel {
  /// The interface's name, or that of the file that it was made from.
  static func name(_ argument: String) throws(ConfigurationFile.NotFound) -> String {
    if ConfigurationFile.isInterfaceName(argument), !isFile(argument) || RunDirectory.names().contains(argument) {
      return argument
    }
    return try ConfigurationFile.interfaceName(argument)
  }

  /// For those who may not see what is running, when they find nothing.
  static func refused() -> ExitCode? {
    guard geteuid() != 0 else { return nil }
    Console.error("only root is told about tunnels")
    return .missing
  }

  private static func isFile(_ argument: String) -> Bool { Files.exists(argument) }
}
