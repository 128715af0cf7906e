/// Why a request is not done, as a problem (RFC 9457). Neither text repeats a secret that came with the request.
struct Refusal: Error, Sendable {
  enum Code: String, Sendable {
    case invalidRequest = "invalid_request"
    case invalidHeader = "invalid_header"
    case invalidToken = "invalid_token"
    case expiredToken = "expired_token"
    case notEntitled = "not_entitled"
    case subscriptionEnded = "subscription_ended"
    case unknownLocation = "unknown_location"
    case unknownDedicatedIP = "unknown_dedicated_ip"
    case dedicatedIPExpired = "dedicated_ip_expired"
    case dedicatedIPUnderMaintenance = "dedicated_ip_under_maintenance"
    case unknownProject = "unknown_project"
    case refusedCredentials = "refused_credentials"
    case tooManyRequests = "too_many_requests"
    case tooLarge = "too_large"
    case unsupportedMediaType = "unsupported_media_type"
    case storageUnavailable = "storage_unavailable"
    case notFound = "not_found"
    case methodNotAllowed = "method_not_allowed"
  }

  let status: Int
  let code: Code
  let detail: String
  var headers: [(name: String, value: String)] = []

  init(_ status: Int, _ code: Code, _ detail: String, headers: [(name: String, value: String)] = []) {
    self.status = status
    self.code = code
    self.detail = detail
    self.headers = headers
  }

  static func tooMany(after seconds: Int64) -> Refusal {
    Refusal(
      429, .tooManyRequests, "too many requests; try again in \(seconds) s", headers: [("Retry-After", "\(seconds)")])
  }

  static let storage = Refusal(503, .storageUnavailable, "the database cannot be read or written; try again later")

  var response: HTTPResponse {
    var response = HTTPResponse.json(
      [
        "type": "about:blank", "title": .string(Self.title(of: status)), "status": .integer(Int64(status)),
        "code": .string(code.rawValue), "detail": .string(detail),
      ], status: status, type: "application/problem+json")
    response.headers += headers
    return response
  }

  private static func title(of status: Int) -> String {
    switch status {
    case 400: "Bad Request"
    case 401: "Unauthorized"
    case 403: "Forbidden"
    case 404: "Not Found"
    case 405: "Method Not Allowed"
    case 409: "Conflict"
    case 410: "Gone"
    case 413: "Content Too Large"
    case 415: "Unsupported Media Type"
    case 429: "Too Many Requests"
    default: "Service Unavailable"
    }
  }
}

/// The same for the token and revocation endpoints (RFC 6749, section 5.2).
struct OAuthRefusal: Error, Sendable {
  enum Code: String, Sendable {
    case invalidRequest = "invalid_request"
    case invalidClient = "invalid_client"
    case invalidGrant = "invalid_grant"
    case unsupportedGrantType = "unsupported_grant_type"
    case invalidScope = "invalid_scope"
    case slowDown = "slow_down"
    case temporarilyUnavailable = "temporarily_unavailable"
  }

  let status: Int
  let code: Code
  let detail: String
  var headers: [(name: String, value: String)] = []

  init(_ code: Code, _ detail: String, status: Int = 400, headers: [(name: String, value: String)] = []) {
    self.code = code
    self.detail = detail
    self.status = status
    self.headers = headers
  }

  /// What every operation can be refused for, in the words of this one.
  init(_ refusal: Refusal) {
    let code: Code =
      switch refusal.status {
      case 429: .slowDown
      case 503: .temporarilyUnavailable
      default: .invalidRequest
      }
    self.init(code, refusal.detail, status: refusal.status, headers: refusal.headers)
  }

  var response: HTTPResponse {
    var response = HTTPResponse.json(
      ["error": .string(code.rawValue), "error_description": .string(detail)], status: status)
    response.headers += headers
    return response
  }
}
