import KapeCommandLine
import KapeCrypto

struct GenpskCommand: Command {
  static let name = "genpsk"
  static let summary = "write a new preshared key"
  static let help = """
    usage: kape genpsk

    Writes a new preshared key in base64 to standard output. Both ends of a tunnel may have one and the same,
    as PresharedKey of each other's [Peer] section. Keep it secret.

    """
  static let syntax = CommandSyntax()

  static func run(_ arguments: [String]) async -> ExitCode {
    guard arguments.isEmpty else { return usage(arguments) }
    SecretOutput.warnIfWorldAccessible()
    var output = SecretBuffer()
    output.append(base64: PresharedKey())
    output.append("\n")
    return SecretOutput.write(output) ? .done : .failed
  }
}
