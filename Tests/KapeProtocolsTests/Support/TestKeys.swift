import KapeCrypto

/// Throw-away keys.
enum TestKeys {
  static let aPrivate = "AKsOlH9cqm9TBCCG0B7mndns9sq6YEaab9NOC52g+kg="
  static let aPublic = "8TXhAVhUfR6Zd5E5oMLzXP4rXJpbLA3Y0067iYFbgmI="
  static let bPrivate = "oOVIheL46MDVaXMfaj/WyMfrHetnsQzUgvZofXccyWw="
  static let bPublic = "I2vw8FnZyVTLSKulnurfxTLpMnpkhhbeqaeI8oC0Mkc="
  static let cPublic = "D1uE2YxfIILkP0LM2mOvygg9/cvMGcBrnOkIjoWD8nQ="
  static let shared = "nm72df/I+hl9L7LWMfVPaaa5dt+29S4NkEcO+Vag2GM="
}

extension SecretBuffer {
  borrowing func text() -> String {
    withBytes { bytes in bytes.withUnsafeBytes { String(decoding: $0, as: UTF8.self) } }
  }

  borrowing func bytes() -> [UInt8] {
    withBytes { bytes in bytes.withUnsafeBytes { Array($0) } }
  }
}
