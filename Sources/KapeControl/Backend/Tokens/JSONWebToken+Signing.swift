import KapeCrypto

extension JSONWebToken {
  /// A token in its compact form (RFC 7515, section 7.1), signed.
  static func signed(_ claims: JSON, _ kind: TokenKind, kid: String, _ key: SigningKey) throws -> String {
    let header: JSON = ["alg": .string(key.algorithm.rawValue), "kid": .string(kid), "typ": .string(kind.rawValue)]
    let signed = Base64URL.encode(header.bytes) + "." + Base64URL.encode(claims.bytes)
    return signed + "." + Base64URL.encode(try key.signature(of: Array(signed.utf8)))
  }
}
