import KapeCrypto

/// The tokens that the backend signs. Each says in its header what it is, so that none passes for another (RFC 8725,
/// section 3.11).
enum TokenKind: String, Sendable, CaseIterable {
  /// The OIDC access token (RFC 9068).
  case identity = "at+jwt"
  case idToken = "JWT"
  case receipt = "receipt+jwt"
  case connection = "connection+jwt"
  case dedicatedIP = "dip+jwt"

  /// OpenID Connect wants RS256 for ID tokens (Discovery 1.0, section 3); the others are short with ES256.
  var algorithm: SignatureAlgorithm { self == .idToken ? .rs256 : .es256 }
}
