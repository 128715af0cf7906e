import Foundation

/// What a token endpoint gives (RFC 6749, section 5.1; OpenID Connect Core 1.0, section 3.1.3.3).
struct TokenGrant: Sendable {
  var accessToken: String
  var expiresIn: TimeInterval?
  var refreshToken: String?
  var idToken: String?

  /// - Throws: `KapeAuthError`.
  init(_ response: BackendResponse, now: Date) throws(KapeAuthError) {
    guard response.status == 200 else { throw Self.failure(response, now: now) }
    guard let fields = try? JSONDecoder().decode(Fields.self, from: response.body), !fields.accessToken.isEmpty else {
      throw .invalidResponse("the token endpoint gave no access token")
    }
    guard fields.tokenType.lowercased() == "bearer" else {
      throw .invalidResponse("a token of the type \(fields.tokenType), and only Bearer is known here")
    }
    accessToken = fields.accessToken
    expiresIn = fields.expiresIn
    refreshToken = fields.refreshToken
    idToken = fields.idToken
  }

  static func failure(_ response: BackendResponse, now: Date) -> KapeAuthError {
    switch response.status {
    case 429: return .rateLimited(until: RetryAfter.date(response.fields["retry-after"], now: now))
    case 500...: return .unavailable(status: response.status)
    default:
      guard let error = try? JSONDecoder().decode(Failure.self, from: response.body) else {
        return .invalidResponse("the token endpoint answered \(response.status), without a reason")
      }
      return .refused(code: error.error, reason: error.reason)
    }
  }

  private struct Fields: Decodable {
    var accessToken: String
    var tokenType: String
    var expiresIn: TimeInterval?
    var refreshToken: String?
    var idToken: String?

    enum CodingKeys: String, CodingKey {
      case accessToken = "access_token"
      case tokenType = "token_type"
      case expiresIn = "expires_in"
      case refreshToken = "refresh_token"
      case idToken = "id_token"
    }
  }

  private struct Failure: Decodable {
    var error: String
    var reason: String?

    enum CodingKeys: String, CodingKey {
      case error
      case reason = "error_description"
    }
  }
}
