import Glibc
import KapeCommandLine
import KapeControl

/// kaped in the foreground.
enum DaemonCommand: Command {
  static let name = "daemon"
  static let summary = "run kaped, which starts the tunnel providers of apps and sets up their network"
  static let help = """
    usage: kape daemon [--verbose] [--idle SECONDS]
           kaped [--verbose] [--idle SECONDS]

    Serves apps and tunnel providers on kaped.sock until SIGTERM or SIGINT; then every tunnel is taken down and
    everything is put back. What an earlier one that was killed has left behind is put back at the start, and by
    'kape recover'.

    An app of any user may install profiles for that user, and start and stop them. A provider is started with its
    user's rights and nothing more: no capability, no way to get one, no descriptor of kaped's. What it may ask for is
    in docs/daemon.md.

      --verbose        a line for each change of a tunnel on standard error
      --idle SECONDS   how long a provider's process stays after its tunnel, for the next one (default 20)

    environment
      KAPE_RUN_DIR     folder for the socket and for the state of running tunnels (default /run/kape)
      KAPE_STATE_DIR   folder for profiles (default /var/lib/kape)

    exit status: 0 ended by a signal; 1 failed; 2 usage; 3 no privilege; 4 another kaped runs

    """
  static let syntax = CommandSyntax(options: ["--verbose"], optionsWithValue: ["--idle"])

  static func run(_ arguments: [String]) async -> ExitCode {
    guard syntax.fault(in: arguments) == nil else { return usage(arguments) }
    let log = EventLog(level: arguments.contains("--verbose") ? .verbose : .error, of: "service", "kaped")
    var options = Daemon.Options(log: log)
    if let index = arguments.firstIndex(of: "--idle") {
      guard let seconds = UInt32(arguments[index + 1]) else {
        Console.error("daemon: --idle \(arguments[index + 1]): seconds are expected")
        return .usage
      }
      options.deadlines.idle = .seconds(seconds)
    }
    guard geteuid() == 0 else {
      Console.error("daemon: it takes root: it makes interfaces and starts processes of other users")
      return .missing
    }
    return await serve(options)
  }

  private static func serve(_ options: Daemon.Options) async -> ExitCode {
    signal(SIGPIPE, SIG_IGN)
    umask(0o077)
    do {
      let signals = try TerminationSignals()
      let reactor = try Reactor()
      let daemon = try await Daemon(options, reactor)
      Console.out("kaped serves on \(Daemon.socketPath)")
      let serving = Task { await daemon.run() }
      _ = try await signals.next(reactor)
      serving.cancel()
      await serving.value
      return .done
    } catch let failure as Daemon.Failure {
      Console.error("daemon: \(failure)")
      if case .held = failure { return .inUse }
      return .failed
    } catch {
      Console.error("daemon: \(error)")
      return .failed
    }
  }
}
