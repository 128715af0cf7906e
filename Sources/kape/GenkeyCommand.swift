import KapeCommandLine
import KapeCrypto

struct GenkeyCommand: Command {
  static let name = "genkey"
  static let summary = "write a new private key"
  static let help = """
    usage: kape genkey

    Writes a new private key in base64 to standard output. Keep it secret:

        umask 077
        kape genkey > private.key
        kape pubkey < private.key

    """
  static let syntax = CommandSyntax()

  static func run(_ arguments: [String]) async -> ExitCode {
    guard arguments.isEmpty else { return usage(arguments) }
    SecretOutput.warnIfWorldAccessible()
    var output = SecretBuffer()
    output.append(base64: PrivateKey())
    output.append("\n")
    return SecretOutput.write(output) ? .done : .failed
  }
}
