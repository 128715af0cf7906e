import Dispatch
import Glibc
import KapeCommandLine

/// `kape VERB ARGUMENTS`; under the name `kape-wg` the verb is `wg`, because `wg-quick` calls one word.
@main
struct Kape {
  /// Not async itself: the runtime opens descriptors before it starts a task, and would get those of closed streams.
  static func main() {
    Console.openClosedStreams()
    Task.detached { exit(await runCommandLine().rawValue) }
    dispatchMain()
  }

  private static func runCommandLine() async -> ExitCode {
    var arguments = CommandLine.arguments
    let program = arguments.isEmpty ? "kape" : arguments.removeFirst()
    let verb: String
    if program.split(separator: "/").last == "kape-wg" {
      verb = "wg"
    } else if arguments.isEmpty {
      Console.write(commands.overview, to: STDERR_FILENO)
      return .usage
    } else {
      verb = arguments.removeFirst()
    }
    return await run(verb, arguments)
  }

  static func run(_ verb: String, _ arguments: [String]) async -> ExitCode {
    guard verb == "--version" || verb == "version" else { return await commands.run(verb, arguments) }
    if arguments.isEmpty {
      Console.out(Version.line)
    } else if arguments == ["--verbose"] {
      Console.write(Version.report(), to: STDOUT_FILENO)
    } else {
      Console.error("usage: kape --version [--verbose]")
      return .usage
    }
    return .done
  }
}

private let commands = CommandTable(
  [
    WgCommand.self,
    UpCommand.self,
    DownCommand.self,
    StatusCommand.self,
    SaveCommand.self,
    RecoverCommand.self,
    CheckCommand.self,
    StripCommand.self,
    GenkeyCommand.self,
    PubkeyCommand.self,
    GenpskCommand.self,
    SelftestCommand.self,
    BackendCommand.self,
    DaemonCommand.self,
  ], closing: "'kape COMMAND --help' says more; 'kape --version [--verbose]' tells what it runs on.")
