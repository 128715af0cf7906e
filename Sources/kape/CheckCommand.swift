import KapeCommandLine
import KapeCrypto
import KapeProtocols

struct CheckCommand: Command {
  static let name = "check"
  static let summary = "read a configuration, print what it says or what is wrong with it"
  static let help = """
    usage: kape check FILE | NAME

    Reads a configuration and prints what the program makes of it, secrets hidden; warnings go to standard error.
    If something is wrong, everything found is printed there: file, line, key, reason and remedy. The kind of a file
    is told by its content. NAME stands for /etc/wireguard/NAME.conf, - for standard input.

    exit status: 0 it is right; 1 it is not, or cannot be read

    """
  static let syntax = CommandSyntax(operands: 1...1, takesStandardInput: true)

  static func run(_ arguments: [String]) async -> ExitCode {
    guard syntax.fault(in: arguments) == nil, let path = arguments.first.map(ConfigurationPath.find) else {
      return usage(arguments)
    }
    do {
      let content = try InputFile.read(path)
      switch content.withBytes({ bytes in ConfigurationKind.detect(bytes) }) {
      case .wireGuard: return check(content, path)
      case .openVPN, .lightway:
        Console.error("\(path): this is not a WireGuard configuration, and no other kind is supported yet")
      case nil:
        Console.error("\(path): unknown kind of configuration; a WireGuard configuration begins with [Interface]")
      }
    } catch {
      Console.error(error.reason)
    }
    return .failed
  }

  private static func check(_ content: borrowing SecretBuffer, _ path: String) -> ExitCode {
    let parsed = content.withBytes { bytes in WireGuardConfiguration.parse(bytes, file: path) }
    for diagnostic in parsed.diagnostics { Console.error(diagnostic.description) }
    guard let configuration = parsed.configuration else { return .failed }
    return Console.result(WireGuardSummary.text(configuration))
  }
}
