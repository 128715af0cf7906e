import KapeCrypto

extension Backend {
  private enum Redeemed {
    case granted(Grant)
    case refused(String)
  }

  /// An authorization code, once (RFC 6749, section 4.1.3; RFC 7636, section 4.6).
  func redeemCode(_ form: FormData, _ client: BackendSettings.Client) throws -> HTTPResponse {
    guard let code = form["code"], let verifier = form["code_verifier"], let redirectURI = form["redirect_uri"] else {
      throw OAuthRefusal(.invalidRequest, "code, code_verifier and redirect_uri are wanted")
    }
    guard let challenge = ProofKey(verifier: verifier)?.challenge else {
      throw OAuthRefusal(.invalidRequest, "code_verifier must have 43 to 128 unreserved characters")
    }
    let hash = SHA256.hash(Array(code.utf8))
    // What is refused may change something too: so it does not leave the transaction as an error.
    let redeemed = try database.transaction { try redeem(hash, client.id, redirectURI, challenge) }
    switch redeemed {
    case .granted(let grant): return try tokens(grant)
    case .refused(let detail): throw OAuthRefusal(.invalidGrant, detail)
    }
  }

  private struct Code {
    let user: String
    let client: String
    let redirectURI: String
    let scope: String
    let nonce: String?
    let challenge: String
    let authTime: Int64
    let expires: Int64
    let family: String?
  }

  private func redeem(_ hash: [UInt8], _ client: String, _ redirectURI: String, _ challenge: String) throws -> Redeemed
  {
    let code = try database.row(
      """
      SELECT user, client, redirect_uri, scope, nonce, challenge, auth_time, expires, family FROM codes WHERE hash = ?
      """, .blob(hash)
    ) { row in
      Code(
        user: row.text(0), client: row.text(1), redirectURI: row.text(2), scope: row.text(3),
        nonce: row.optionalText(4),
        challenge: row.text(5), authTime: row.integer(6), expires: row.integer(7), family: row.optionalText(8))
    }
    guard let code else { return .refused("there is no such code, or it was of no use") }
    if let family = code.family {
      // Somebody has what he should not have (RFC 6749, section 10.5).
      try database.run("UPDATE families SET revoked = 1 WHERE id = ?", .text(family))
      log.error("code_used_twice", [:])
      return .refused("the code was used before: whatever came of it is revoked")
    }
    guard code.expires > clock.seconds else { return .refused("the code has expired: sign in again") }
    guard code.client == client, code.redirectURI == redirectURI,
      SecretMemory.areEqual(Array(code.challenge.utf8), Array(challenge.utf8))
    else {
      try database.run("DELETE FROM codes WHERE hash = ?", .blob(hash))
      return .refused("client_id, redirect_uri or code_verifier is not the code's; it is of no use any more")
    }
    let family = RandomText.identifier()
    let expires = clock.seconds + settings.lifetimes.refreshToken
    try database.run(
      "INSERT INTO families (id, user, client, auth_time, scope, expires) VALUES (?, ?, ?, ?, ?, ?)", .text(family),
      .text(code.user), .text(client), .integer(code.authTime), .text(code.scope), .integer(expires))
    try database.run("UPDATE codes SET family = ? WHERE hash = ?", .text(family), .blob(hash))
    let token = try makeRefreshToken(family: family, parent: nil)
    return .granted(
      Grant(
        user: code.user, client: client, scope: code.scope, family: family, authTime: code.authTime, nonce: code.nonce,
        refreshToken: token))
  }
}
