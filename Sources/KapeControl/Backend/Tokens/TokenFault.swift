import KapeCrypto

/// Why a token is not taken, in words that repeat nothing of it.
enum TokenFault: Error, Equatable {
  case malformed
  /// Of another kind than is wanted here.
  case wrongKind
  /// No key of ours, or one that is spent.
  case unknownKey
  case wrongSignature
  /// By another issuer, or for another audience.
  case notForUs
  case expired
  case revoked

  init(_ error: JSONWebTokenError) {
    self =
      switch error {
      case .malformed, .badClaim, .criticalExtension: .malformed
      case .algorithmNotAllowed, .wrongType: .wrongKind
      case .unknownKey: .unknownKey
      case .wrongSignature: .wrongSignature
      case .expired: .expired
      case .notYetValid, .wrongIssuer, .wrongAudience: .notForUs
      }
  }

  var code: Refusal.Code { self == .expired ? .expiredToken : .invalidToken }

  var detail: String {
    switch self {
    case .malformed: "the token is not a JWT"
    case .wrongKind: "the token is of another kind than is wanted here"
    case .unknownKey: "the key that signed the token is not, or not any more, one of ours: get a new token"
    case .wrongSignature: "the token's signature is wrong"
    case .notForUs: "the token is by another issuer or for another audience"
    case .expired: "the token has expired: get a new one"
    case .revoked: "the sign-in that the token comes from was revoked: sign in again"
    }
  }

  /// As an API tells it (RFC 6750, section 3).
  var refusal: Refusal {
    Refusal(
      401, code, detail,
      headers: [("WWW-Authenticate", "Bearer error=\"invalid_token\", error_description=\"\(detail)\"")])
  }
}
