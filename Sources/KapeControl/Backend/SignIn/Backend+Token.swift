import KapeCrypto

extension Backend {
  /// The token endpoint (RFC 6749, section 3.2).
  func token(_ request: HTTPRequest) throws -> HTTPResponse {
    let (form, client) = try oauthForm(request, .token)
    switch form["grant_type"] {
    case "authorization_code": return try redeemCode(form, client)
    case "refresh_token": return try refresh(form, client)
    case Self.guestGrant where settings.guests.areAllowed: return try guest(form, client, from: request.client)
    case nil: throw OAuthRefusal(.invalidRequest, "grant_type is missing")
    default: throw OAuthRefusal(.unsupportedGrantType, "this server does not take that grant_type")
    }
  }

  /// Revocation (RFC 7009). An access token is as good as revoked with its family, which its refresh token stands for.
  func revoke(_ request: HTTPRequest) throws -> HTTPResponse {
    let (form, client) = try oauthForm(request, .revoke)
    guard let token = form["token"] else { throw OAuthRefusal(.invalidRequest, "token is missing") }
    try database.run(
      """
      UPDATE families SET revoked = 1 WHERE client = ? AND id = (SELECT family FROM refresh_tokens WHERE hash = ?)
      """, .text(client.id), .blob(SHA256.hash(Array(token.utf8))))
    return HTTPResponse(200, headers: [("Cache-Control", "no-store")])
  }

  private func oauthForm(
    _ request: HTTPRequest, _ operation: Operation
  ) throws -> (FormData, BackendSettings.Client) {
    try limit(operation, request.client)
    guard let form = FormData(parsing: request.body) else {
      throw OAuthRefusal(.invalidRequest, "the body is not percent-encoded text")
    }
    if let name = form.repeatedName { throw OAuthRefusal(.invalidRequest, "\(name.prefix(40)) is there twice") }
    guard let id = form["client_id"] else { throw OAuthRefusal(.invalidRequest, "client_id is missing") }
    guard let client = settings.clients.first(where: { $0.id == id }) else {
      throw OAuthRefusal(.invalidClient, "there is no such client_id", status: 401)
    }
    return (form, client)
  }

  // MARK: A guest

  /// A guest is whoever knows a secret of 32 bytes; nothing about him is kept.
  private func guest(
    _ form: FormData, _ client: BackendSettings.Client, from address: String
  ) throws -> HTTPResponse {
    guard let secret = form["guest_secret"].flatMap(Base64URL.decode), secret.count == 32 else {
      throw OAuthRefusal(.invalidRequest, "guest_secret must be 32 bytes as base64url")
    }
    try limit("guests", address, settings.limits.guests)
    let asked = (form["scope"] ?? "openid").split(separator: " ").map(String.init)
    return try tokens(
      Grant(
        user: GuestIdentity.user(ofSecret: secret), client: client.id,
        scope: Self.scopes.filter { asked.contains($0) && $0 != "offline_access" }.joined(separator: " "), isGuest: true
      ))
  }

  // MARK: What is issued

  struct Grant {
    var user: String
    var client: String
    var scope: String
    var isGuest = false
    var family: String?
    var authTime: Int64?
    var nonce: String?
    var refreshToken: String?
  }

  func tokens(_ grant: Grant) throws -> HTTPResponse {
    let expires = clock.seconds + settings.lifetimes.identityToken
    let access = try sign(
      .identity, expires: expires,
      [
        "sub": .string(grant.user), "client_id": .string(grant.client), "scope": .string(grant.scope),
        "is_guest": .bool(grant.isGuest),
        // The family stands in it, for its revocation.
        "jti": .string((grant.family.map { $0 + "." } ?? "") + RandomText.identifier()),
      ])
    var answer: [String: JSON] = [
      "access_token": .string(access), "token_type": "Bearer", "expires_in": .integer(settings.lifetimes.identityToken),
      "scope": .string(grant.scope),
    ]
    if let token = grant.refreshToken { answer["refresh_token"] = .string(token) }
    if grant.scope.split(separator: " ").contains("openid") {
      answer["id_token"] = .string(try idToken(grant, access: access, expires: expires))
    }
    return .json(.object(answer))
  }

  /// OpenID Connect Core 1.0, sections 2 and 3.1.3.6.
  private func idToken(_ grant: Grant, access: String, expires: Int64) throws -> String {
    var claims: [String: JSON] = [
      "sub": .string(grant.user), "is_guest": .bool(grant.isGuest),
      "at_hash": .string(Base64URL.encode(Array(SHA256.hash(Array(access.utf8))[..<16]))),
    ]
    if let nonce = grant.nonce { claims["nonce"] = .string(nonce) }
    if let time = grant.authTime { claims["auth_time"] = .integer(time) }
    let scopes = grant.scope.split(separator: " ")
    if !grant.isGuest,
      let user = try database.row(
        "SELECT email, name FROM users WHERE id = ?", .text(grant.user), map: { ($0.text(0), $0.text(1)) })
    {
      if scopes.contains("email") {
        claims["email"] = .string(user.0)
        claims["email_verified"] = true
      }
      if scopes.contains("profile") { claims["name"] = .string(user.1) }
    }
    return try sign(.idToken, expires: expires, audience: grant.client, claims)
  }
}

/// Guests have no account: who they are follows from a secret that their app made.
enum GuestIdentity {
  static func user(ofSecret secret: [UInt8]) -> String { "guest-" + Base64URL.encode(SHA256.hash(secret)).prefix(22) }
}
