import Glibc
import KapeCommandLine
import KapeCrypto

struct PubkeyCommand: Command {
  static let name = "pubkey"
  static let summary = "read a private key, write its public key"
  static let help = """
    usage: kape pubkey < PRIVATE-KEY

    Reads a private key in base64 from standard input and writes its public key to standard output.

    """
  static let syntax = CommandSyntax()

  static func run(_ arguments: [String]) async -> ExitCode {
    guard arguments.isEmpty else { return usage(arguments) }
    do {
      let input = try InputFile.read(descriptor: STDIN_FILENO, name: "standard input")
      let key = try input.withBytes { bytes throws(InputFile.Failure) in try privateKey(bytes) }
      return Console.result(key.publicKey.base64 + "\n")
    } catch {
      Console.error("pubkey: " + error.reason)
      return .failed
    }
  }

  /// 44 characters; white space may follow.
  private static func privateKey(_ text: RawSpan) throws(InputFile.Failure) -> PrivateKey {
    let size = 44
    guard text.byteCount >= size, let key = PrivateKey(base64: text.extracting(0..<size)) else {
      throw InputFile.Failure(reason: "Key is not the correct length or format")
    }
    for index in size..<text.byteCount {
      let byte = text.unsafeLoad(fromByteOffset: index, as: UInt8.self)
      if isspace(Int32(byte)) == 0 { throw InputFile.Failure(reason: "Trailing characters found after key") }
    }
    return key
  }
}
