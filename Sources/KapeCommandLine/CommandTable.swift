import Glibc
import KapeProtocols

/// The verbs of a program, and the way from a command line to one of them.
package struct CommandTable: Sendable {
  /// In the order of the overview.
  private let commands: [any Command.Type]
  /// The last line of the overview.
  private let closing: String

  package init(_ commands: [any Command.Type], closing: String) {
    self.commands = commands
    self.closing = closing
  }

  package var names: [String] { commands.map { $0.name } }

  /// `arguments` come without the verb.
  package func run(_ verb: String, _ arguments: [String]) async -> ExitCode {
    if verb == "--help" || verb == "-h" || verb == "help" {
      Console.write(overview, to: STDOUT_FILENO)
      return .done
    }
    guard let command = commands.first(where: { $0.name == verb }) else {
      let near = NearMatch.find(verb, among: names + ["help", "version"])
      Console.error(
        "unknown command '\(verb)'; \(near.map { "did you mean '\($0)'? " } ?? "")'kape --help' lists them")
      return .usage
    }
    if !command.answersHelp, arguments.contains("--help") || arguments.contains("-h") {
      Console.write(command.help, to: STDOUT_FILENO)
      return .done
    }
    return await command.run(arguments)
  }

  package var overview: String {
    let width = names.map(\.count).max() ?? 0
    let rows = commands.map { command in
      "  " + command.name + String(repeating: " ", count: width - command.name.count + 2) + command.summary + "\n"
    }
    return "usage: kape COMMAND [ARGUMENTS]\n\n" + rows.joined() + "\n" + closing + "\n"
  }
}
