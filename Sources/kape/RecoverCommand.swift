import KapeCommandLine
import KapeControl

enum RecoverCommand: Command {
  static let name = "recover"
  static let summary = "put back whatever processes that were killed have left behind"
  static let help = """
    usage: kape recover

    For every tunnel of 'kape up' or kaped whose process is gone: ends what it had started, and puts routes, rules, name
    servers and kernel parameters back as they were, from its journal. Tunnels that run are left alone. Nothing to do is
    no failure.

    environment
      KAPE_RUN_DIR   folder for the state of running tunnels (default /run/kape)

    exit status: 0 done; 1 something could not be put back; 2 usage; 3 no privilege

    """
  static let syntax = CommandSyntax()

  static func run(_ arguments: [String]) async -> ExitCode {
    guard syntax.fault(in: arguments) == nil else { return usage(arguments) }
    if let code = RunningTunnel.refused() { return code }
    return await Recovery.runAll { Console.error($0) } ? .done : .failed
  }
}
