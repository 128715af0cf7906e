import KapeCrypto

/// What an app asks for when it sends its user to sign in (RFC 6749, section 4.1.1; OpenID Connect Core 1.0, 3.1.2.1).
struct AuthorizationRequest: Sendable, Equatable {
  var client: String
  var redirectURI: String
  var scope: String
  var state: String?
  var nonce: String?
  /// S256 (RFC 7636, section 4.2).
  var challenge: String
}

/// The same inside the form: it comes back with it, sealed, so that nothing is kept of a form that nobody sends. It is
/// good in the browser that it was shown in.
struct SealedRequest {
  static func seal(_ request: AuthorizationRequest, expires: Int64, browser: String, key: [UInt8]) -> String {
    let json: JSON = [
      "client": .string(request.client), "redirect_uri": .string(request.redirectURI), "scope": .string(request.scope),
      "state": .optional(request.state), "nonce": .optional(request.nonce), "challenge": .string(request.challenge),
      "expires": .integer(expires), "browser": .string(Base64URL.encode(SHA256.hash(Array(browser.utf8)))),
    ]
    let bytes = json.bytes
    return Base64URL.encode(bytes) + "." + Base64URL.encode(SHA256.authenticate(bytes, key: key))
  }

  /// nil: not sealed by us, expired, or of another browser.
  static func open(_ text: String, now: Int64, browser: String?, key: [UInt8]) -> AuthorizationRequest? {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 2, let bytes = Base64URL.decode(parts[0]), let seal = Base64URL.decode(parts[1]),
      SecretMemory.areEqual(seal, SHA256.authenticate(bytes, key: key)), let json = try? JSON(parsing: bytes),
      let expires = json["expires"]?.integer, expires > now, let browser,
      json["browser"]?.string == Base64URL.encode(SHA256.hash(Array(browser.utf8))),
      let client = json["client"]?.string, let redirectURI = json["redirect_uri"]?.string,
      let scope = json["scope"]?.string, let challenge = json["challenge"]?.string
    else { return nil }
    return AuthorizationRequest(
      client: client, redirectURI: redirectURI, scope: scope, state: json["state"]?.string,
      nonce: json["nonce"]?.string, challenge: challenge)
  }
}
