import KapeCrypto

private let cookieName = "kape_sign_in"

extension Backend {
  /// An error that is told to the app, by way of its redirect URI.
  private struct Redirected: Error {
    let code: String
    let detail: String
    init(_ code: String, _ detail: String) {
      self.code = code
      self.detail = detail
    }
  }

  /// Shows the form.
  func authorize(_ request: HTTPRequest) throws -> HTTPResponse {
    guard let query = request.query else {
      throw Refusal(400, .invalidRequest, "the query is not percent-encoded text")
    }
    guard let id = query["client_id"], let client = settings.clients.first(where: { $0.id == id }) else {
      throw Refusal(400, .invalidRequest, "the app that sent you here is unknown (client_id)")
    }
    guard let redirectURI = query["redirect_uri"].flatMap(RedirectURI.init),
      client.redirectURIs.compactMap(RedirectURI.init).contains(where: redirectURI.isAllowed)
    else {
      throw Refusal(
        400, .invalidRequest, "the app that sent you here gave an address that is not its own (redirect_uri)")
    }
    do {
      let asked = try Self.read(query, client, redirectURI)
      let browser = cookie(request) ?? RandomText.secret()
      let sealed = SealedRequest.seal(
        asked, expires: clock.seconds + settings.lifetimes.form, browser: browser, key: formKey)
      var response = Page.signIn(200, sealed: sealed, action: formPath)
      response.headers.append(("Set-Cookie", setCookie(browser)))
      return response
    } catch let error as Redirected {
      return redirect(
        redirectURI, state: query["state"], [("error", error.code), ("error_description", error.detail)])
    }
  }

  private static func read(
    _ query: FormData, _ client: BackendSettings.Client, _ redirectURI: RedirectURI
  ) throws -> AuthorizationRequest {
    if let name = query.repeatedName { throw Redirected("invalid_request", "\(name.prefix(40)) is there twice") }
    for name in ["request", "request_uri"] where query[name] != nil {
      throw Redirected(
        name == "request" ? "request_not_supported" : "request_uri_not_supported", "\(name) is not taken")
    }
    guard query["response_type"] == "code" else {
      throw Redirected(
        query["response_type"] == nil ? "invalid_request" : "unsupported_response_type", "response_type must be code")
    }
    if let mode = query["response_mode"], mode != "query" {
      throw Redirected("invalid_request", "response_mode must be query")
    }
    guard query["code_challenge_method"] == "S256", let challenge = query["code_challenge"],
      Base64URL.decode(challenge)?.count == SHA256.size
    else {
      throw Redirected("invalid_request", "PKCE with S256 is required: code_challenge, code_challenge_method=S256")
    }
    let asked = (query["scope"] ?? "").split(separator: " ").map(String.init)
    guard asked.contains("openid") else { throw Redirected("invalid_scope", "the scope openid is wanted") }
    for (name, most) in [("state", 1024), ("nonce", 256)] where (query[name] ?? "").utf8.count > most {
      throw Redirected("invalid_request", "\(name) has more than \(most) bytes")
    }
    if query["prompt"]?.split(separator: " ").contains("none") ?? false {
      throw Redirected("login_required", "nobody is signed in here: the form must be shown")
    }
    return AuthorizationRequest(
      client: client.id, redirectURI: redirectURI.text,
      scope: scopes.filter(asked.contains).joined(separator: " "), state: query["state"], nonce: query["nonce"],
      challenge: challenge)
  }

  /// Takes the form.
  func signIn(_ request: HTTPRequest) async throws -> HTTPResponse {
    guard let form = FormData(parsing: request.body), form.repeatedName == nil else {
      throw Refusal(400, .invalidRequest, "this is not a form of ours")
    }
    guard let sealed = form["request"],
      let asked = SealedRequest.open(sealed, now: clock.seconds, browser: cookie(request), key: formKey),
      let redirectURI = RedirectURI(asked.redirectURI)
    else {
      throw Refusal(
        400, .invalidRequest,
        "the form has expired, or was opened in another browser: go back to the app and sign in again")
    }
    switch form["action"] {
    case "deny":
      return redirect(
        redirectURI, state: asked.state, [("error", "access_denied"), ("error_description", "the user cancelled")])
    case "sign_in": break
    default: throw Refusal(400, .invalidRequest, "this is not a form of ours")
    }
    let email = form["username"] ?? ""
    guard let user = try await user(email, form["password"] ?? "", from: request.client) else {
      log.error("wrong_password", [:])
      return Page.signIn(
        403, sealed: sealed, action: formPath, email: String(email.prefix(254)),
        fault: "The e-mail address or the password is wrong.")
    }
    let code = try makeCode(asked, user: user)
    return redirect(redirectURI, state: asked.state, [("code", code)])
  }

  /// The user's id; nil for a wrong password and for an e-mail address that nobody has.
  private func user(_ email: String, _ password: String, from client: String) async throws -> String? {
    try limit(.signIn, client)
    let limit = settings.limits.passwords
    let key = email.lowercased()
    try self.limit("passwords", key, limit)
    // More than these would only wait for each other.
    guard hashing < 8 else { throw Refusal.tooMany(after: 1) }
    hashing += 1
    defer { hashing -= 1 }
    let found = try database.row("SELECT id, password_hash FROM users WHERE email = ?", .text(email)) {
      (id: $0.text(0), hash: $0.text(1))
    }
    guard try await hasher.isRight(password, for: found?.hash), let found else { return nil }
    // Only wrong ones count.
    limiter.restore("passwords", key)
    return found.id
  }

  private func makeCode(_ asked: AuthorizationRequest, user: String) throws -> String {
    let code = RandomText.secret()
    try database.run(
      """
      INSERT INTO codes (hash, user, client, redirect_uri, scope, nonce, challenge, auth_time, expires)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
      """,
      .blob(SHA256.hash(Array(code.utf8))), .text(user), .text(asked.client), .text(asked.redirectURI),
      .text(asked.scope), .optional(asked.nonce), .text(asked.challenge), .integer(clock.seconds),
      .integer(clock.seconds + settings.lifetimes.code))
    return code
  }

  /// `iss` is RFC 9207. The method becomes GET, and the form's content goes nowhere.
  private func redirect(
    _ uri: RedirectURI, state: String?, _ parameters: [(name: String, value: String)]
  ) -> HTTPResponse {
    let all = parameters + (state.map { [(name: "state", value: $0)] } ?? []) + [(name: "iss", value: issuer)]
    return HTTPResponse(303, headers: [("Location", uri.with(all)), ("Cache-Control", "no-store")])
  }

  // MARK: The browser

  private var formPath: String { settings.paths[.signIn] ?? Operation.signIn.defaultPath }

  private func cookie(_ request: HTTPRequest) -> String? {
    for field in request.headers["cookie"] ?? [] {
      for pair in field.split(separator: ";") {
        let parts = pair.split(separator: "=", maxSplits: 1)
        if parts.count == 2, parts[0].trimmingBlanks == cookieName {
          let value = parts[1].trimmingBlanks
          if Base64URL.decode(value)?.count == 32 { return value }
        }
      }
    }
    return nil
  }

  private func setCookie(_ value: String) -> String {
    "\(cookieName)=\(value); Path=\(formPath); HttpOnly; SameSite=Lax"
      + (issuer.hasPrefix("https:") ? "; Secure" : "")
  }
}
