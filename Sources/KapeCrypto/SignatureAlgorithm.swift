/// How a JSON Web Signature is made (RFC 7518, section 3.1; RFC 8037, section 3.1).
public enum SignatureAlgorithm: String, Sendable, CaseIterable {
  /// ECDSA over P-256 with SHA-256; the signature is r and s, 32 bytes each, big-endian.
  case es256 = "ES256"
  /// RSASSA-PKCS1-v1_5 with SHA-256.
  case rs256 = "RS256"
  /// Ed25519 (RFC 8032); the signature has 64 bytes.
  case eddsa = "EdDSA"
}

/// What a JSON Web Key says of a public key (RFC 7518, section 6: unsigned big-endian integers; RFC 8037, section 2).
public enum PublicKeyParameters: Hashable, Sendable {
  /// Coordinates of a point of P-256, 32 bytes each.
  case p256(x: [UInt8], y: [UInt8])
  case rsa(modulus: [UInt8], exponent: [UInt8])
  /// 32 bytes.
  case ed25519(x: [UInt8])
}
