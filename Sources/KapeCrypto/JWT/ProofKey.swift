/// The secret by which a client proves that it is the one that asked for an authorization code (RFC 7636, method S256).
public struct ProofKey: Sendable {
  /// 43 characters, sent with the code.
  public let verifier: String
  /// Sent with the request: the verifier's hash.
  public var challenge: String { Base64URL.encode(SHA256.hash(Array(verifier.utf8))) }

  /// Of 32 random bytes.
  public init() { verifier = Base64URL.encode(SecretMemory.randomBytes(32)) }

  /// nil unless it is of 43 to 128 characters that are not reserved (RFC 7636, section 4.1).
  public init?(verifier: String) {
    guard (43...128).contains(verifier.utf8.count), verifier.utf8.allSatisfy(Self.isUnreserved) else { return nil }
    self.verifier = verifier
  }

  private static func isUnreserved(_ byte: UInt8) -> Bool {
    let character = Character(Unicode.Scalar(byte))
    return byte < 0x80 && (character.isLetter || character.isNumber || "-._~".contains(character))
  }
}
