/// What the backend does; the names are the operation ids of docs/backend.openapi.json.
enum Operation: String, CaseIterable, Sendable {
  case discover, keys, authorize, signIn, token, revoke
  case subscriptions, receipts, connectionToken
  case locations, endpoints, dedicatedIP
  case addKey
  case verifyOpenVPN, verifyLightway
  case track

  var method: String {
    switch self {
    case .discover, .keys, .authorize, .subscriptions, .locations, .endpoints, .addKey: "GET"
    case .signIn, .token, .revoke, .receipts, .connectionToken, .dedicatedIP, .verifyOpenVPN, .verifyLightway, .track:
      "POST"
    }
  }

  /// Unless the settings say otherwise. The form is sent to where it came from.
  var defaultPath: String {
    switch self {
    case .discover: "/.well-known/openid-configuration"
    case .keys: "/oauth2/jwks"
    case .authorize, .signIn: "/oauth2/authorize"
    case .token: "/oauth2/token"
    case .revoke: "/oauth2/revoke"
    case .subscriptions: "/srs2/subscriptions"
    case .receipts: "/srs2/subscription_receipts"
    case .connectionToken: "/srs2/connection_tokens"
    case .locations: "/vpn/v1/locations"
    case .endpoints: "/vpn/v1/locations/{location_id}/endpoints"
    case .dedicatedIP: "/vpn/v1/dedicated_ips"
    case .addKey: "/addKey"
    case .verifyOpenVPN: "/verify/openvpn"
    case .verifyLightway: "/verify/lightway"
    case .track: "/tracking/events"
    }
  }

  /// How often the same user, holder of a token, or address may, unless the settings say otherwise; nil: not limited.
  var defaultLimit: RateLimiter.Limit? {
    switch self {
    case .discover, .keys, .authorize, .verifyOpenVPN, .verifyLightway: nil
    case .signIn: .init(requests: 20, seconds: 60)
    case .receipts, .connectionToken, .dedicatedIP: .init(requests: 30, seconds: 60)
    case .token, .revoke, .subscriptions, .locations, .addKey: .init(requests: 60, seconds: 60)
    case .endpoints, .track: .init(requests: 120, seconds: 60)
    }
  }

  /// Errors are told as RFC 6749 has it.
  var isOAuth: Bool { self == .token || self == .revoke }
  /// Errors are told as web pages.
  var isPage: Bool { self == .authorize || self == .signIn }
}
