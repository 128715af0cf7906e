import KapeCrypto

// Refresh tokens rotate (RFC 9700, section 4.14.2): each is used once, and gives the next. One that is used again ends
// its family, because it cannot be told which of the two users is the thief. An app that was killed, or lost the answer,
// before it kept the next token may use the last one again for a short time, as long as the next was not used: then that
// one is replaced, and using it ends the family as well.
extension Backend {
  private struct Stored {
    let family: String
    let expires: Int64
    let used: Int64?
    let isReplaced: Bool
    let user: String
    let client: String
    let scope: String
    let authTime: Int64
    let isRevoked: Bool
  }

  private enum Refreshed {
    case granted(Grant)
    case refused(String)
  }

  func refresh(_ form: FormData, _ client: BackendSettings.Client) throws -> HTTPResponse {
    guard let token = form["refresh_token"] else { throw OAuthRefusal(.invalidRequest, "refresh_token is missing") }
    let wanted = form["scope"].map { $0.split(separator: " ").map(String.init) }
    let refreshed = try database.transaction { try refresh(SHA256.hash(Array(token.utf8)), client.id, wanted) }
    switch refreshed {
    case .granted(let grant): return try tokens(grant)
    case .refused(let detail): throw OAuthRefusal(.invalidGrant, detail)
    }
  }

  private func refresh(_ hash: [UInt8], _ client: String, _ wanted: [String]?) throws -> Refreshed {
    guard let stored = try stored(hash), stored.client == client else {
      return .refused("there is no such refresh_token")
    }
    guard !stored.isRevoked else { return .refused("the sign-in was revoked: sign in again") }
    let now = clock.seconds
    guard stored.expires > now else { return .refused("the refresh_token has expired: sign in again") }
    let isUsed = stored.used != nil
    if try stored.isReplaced || (isUsed && !mayRetry(hash, used: stored.used ?? 0, now: now)) {
      try database.run("UPDATE families SET revoked = 1 WHERE id = ?", .text(stored.family))
      log.error("refresh_token_used_twice", [:])
      return .refused("the refresh_token was used before: the sign-in is revoked, sign in again")
    }
    let granted = stored.scope.split(separator: " ").map(String.init)
    if let wanted, !wanted.allSatisfy(granted.contains) {
      throw OAuthRefusal(.invalidScope, "scope asks for more than was granted")
    }
    try database.run(
      "UPDATE refresh_tokens SET used = coalesce(used, ?) WHERE hash = ?", .integer(now), .blob(hash))
    try database.run("UPDATE refresh_tokens SET replaced = 1 WHERE parent = ?", .blob(hash))
    let token = try makeRefreshToken(family: stored.family, parent: hash)
    return .granted(
      Grant(
        user: stored.user, client: client, scope: wanted?.joined(separator: " ") ?? stored.scope,
        family: stored.family, authTime: stored.authTime, refreshToken: token))
  }

  private func stored(_ hash: [UInt8]) throws -> Stored? {
    try database.row(
      """
      SELECT t.family, t.expires, t.used, t.replaced, f.user, f.client, f.scope, f.auth_time, f.revoked
      FROM refresh_tokens t JOIN families f ON f.id = t.family WHERE t.hash = ?
      """, .blob(hash)
    ) { row in
      Stored(
        family: row.text(0), expires: row.integer(1), used: row.optionalInteger(2), isReplaced: row.bool(3),
        user: row.text(4), client: row.text(5), scope: row.text(6), authTime: row.integer(7), isRevoked: row.bool(8))
    }
  }

  private func mayRetry(_ hash: [UInt8], used: Int64, now: Int64) throws -> Bool {
    guard now - used < settings.lifetimes.refreshRetry else { return false }
    return try database.row(
      "SELECT 1 FROM refresh_tokens WHERE parent = ? AND used IS NOT NULL", .blob(hash)
    ) { _ in true } == nil
  }

  func makeRefreshToken(family: String, parent: [UInt8]?) throws -> String {
    let token = RandomText.secret()
    let expires = clock.seconds + settings.lifetimes.refreshToken
    try database.run(
      "INSERT INTO refresh_tokens (hash, family, parent, expires) VALUES (?, ?, ?, ?)",
      .blob(SHA256.hash(Array(token.utf8))), .text(family), parent.map { .blob($0) } ?? .null, .integer(expires))
    try database.run("UPDATE families SET expires = max(expires, ?) WHERE id = ?", .integer(expires), .text(family))
    return token
  }
}
