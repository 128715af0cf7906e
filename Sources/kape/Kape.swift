import Dispatch
import Glibc
import KapeProtocols

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
      Console.write(overview, to: STDERR_FILENO)
      return .usage
    } else {
      verb = arguments.removeFirst()
    }
    return await run(verb, arguments)
  }

  static func run(_ verb: String, _ arguments: [String]) async -> ExitCode {
    if verb == "--help" || verb == "-h" || verb == "help" {
      Console.write(overview, to: STDOUT_FILENO)
      return .done
    }
    if verb == "--version" || verb == "version" {
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
    guard let command = commands.first(where: { $0.name == verb }) else {
      let near = NearMatch.find(verb, among: commands.map { $0.name } + ["help", "version"])
      Console.error(
        "unknown command '\(verb)'; \(near.map { "did you mean '\($0)'? " } ?? "")'kape --help' lists them")
      return .usage
    }
    if arguments.contains("--help") || arguments.contains("-h") {
      Console.write(command.help, to: STDOUT_FILENO)
      return .done
    }
    return await command.run(arguments)
  }

  static var overview: String {
    let width = commands.map { $0.name.count }.max() ?? 0
    let rows = commands.map { command in
      "  " + command.name + String(repeating: " ", count: width - command.name.count + 2) + command.summary + "\n"
    }
    return "usage: kape COMMAND [ARGUMENTS]\n\n" + rows.joined()
      + "\n'kape COMMAND --help' says more; 'kape --version [--verbose]' tells what it runs on.\n"
  }
}
