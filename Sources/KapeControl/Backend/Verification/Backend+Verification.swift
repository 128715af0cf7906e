import KapeCrypto

extension Backend {
  /// What a connection token says, once it is found good: who holds it, and what for.
  struct Connection {
    let holders: [String]
    let entitlements: [String]
    let expires: Int64
  }

  /// Checks a connection token that is to be let in.
  func connection(_ token: String) throws -> Connection {
    let claims = try verify(token, .connection)
    guard let holders = claims["holder"]?.strings, holders.count == 2,
      let entitlements = claims["entitlements"]?.strings, let expires = claims["exp"]?.integer
    else { throw TokenFault.malformed }
    guard entitlements.contains(settings.vpnEntitlement) else {
      throw Refusal(403, .notEntitled, "the token does not carry the entitlement \(settings.vpnEntitlement)")
    }
    return Connection(holders: holders, entitlements: entitlements, expires: expires)
  }

  /// A server asks on behalf of a client that sent a user name and a password: `jwt-auth` and a connection token.
  func verifyOpenVPN(_ request: HTTPRequest) throws -> HTTPResponse {
    try checkVerifier(request)
    let members = try members(request, ["username", "password"])
    guard members["username"]?.string == "jwt-auth" else {
      throw Refusal(403, .refusedCredentials, "the user name must be jwt-auth")
    }
    return try verdict { try verified(connection(members["password"]?.string ?? "")) }
  }

  /// The same for Lightway, where the token comes alone; a dedicated IP has one of its own.
  func verifyLightway(_ request: HTTPRequest) throws -> HTTPResponse {
    try checkVerifier(request)
    let token = try members(request, ["token"])["token"]?.string ?? ""
    return try verdict {
      guard (try? JSONWebSignature(compact: token))?.type == TokenKind.dedicatedIP.rawValue else {
        return verified(try connection(token))
      }
      let claims = try verify(token, .dedicatedIP)
      guard let ip = claims["dedicated_ip"]?.string, let expires = claims["exp"]?.integer else {
        throw TokenFault.malformed
      }
      return [
        "expires_at": .time(expires), "entitlements": [.string(settings.dedicatedIPEntitlement)],
        "dedicated_ip": .string(ip),
      ]
    }
  }

  private func verified(_ connection: Connection) -> JSON {
    [
      "expires_at": .time(connection.expires), "entitlements": .strings(connection.entitlements), "dedicated_ip": .null,
    ]
  }

  /// What is wrong with a client's token is no fault of the server that asks.
  private func verdict(_ body: () throws -> JSON) throws -> HTTPResponse {
    do {
      return .json(try body())
    } catch let fault as TokenFault {
      throw Refusal(403, fault.code, fault.detail)
    }
  }

  private func checkVerifier(_ request: HTTPRequest) throws {
    guard SecretMemory.areEqual(Array(try bearer(request).utf8), verifierKey) else {
      throw Refusal(
        401, .invalidToken, "the key is not the one in the backend's verifier.key",
        headers: [("WWW-Authenticate", "Bearer error=\"invalid_token\"")])
    }
  }
}
