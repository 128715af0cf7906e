import KapeCrypto

/// Names and secrets that nobody guesses.
enum RandomText {
  /// 128 bits, for what must only be unique.
  static func identifier() -> String { Base64URL.encode(SecretMemory.randomBytes(16)) }

  /// 256 bits.
  static func secret() -> String { Base64URL.encode(SecretMemory.randomBytes(32)) }

  /// 100 bits in groups that a person can type: letters and digits that do not look alike.
  static func password() -> String {
    let alphabet = Array("abcdefghijkmnpqrstuvwxyz23456789")
    let letters = SecretMemory.randomBytes(20).map { alphabet[Int($0 & 31)] }
    return stride(from: 0, to: letters.count, by: 5).map { String(letters[$0..<($0 + 5)]) }.joined(separator: "-")
  }
}
