import KapeCrypto

/// An identity that is made on the device: a secret that the backend takes in place of a password, and the user id that
/// follows from it. Who loses the secret loses the identity.
enum GuestIdentity {
  static let secretSize = 32

  /// BASE64URL of 32 random bytes.
  static func newSecret() -> String { Base64URL.encode(SecretMemory.randomBytes(secretSize)) }

  /// `guest-` and 22 characters of BASE64URL(SHA-256(secret)).
  static func userId(of secret: [UInt8]) -> String {
    "guest-" + Base64URL.encode(SHA256.hash(secret)).prefix(22)
  }
}
