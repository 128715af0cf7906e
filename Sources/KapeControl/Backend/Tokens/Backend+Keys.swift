import KapeCrypto

/// Makes keys away from whoever waits.
private actor KeyMaker {
  private let executor = QueueExecutor("kape.backend.keys")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  func make(_ algorithm: SignatureAlgorithm) throws -> SigningKey { try SigningKey(generating: algorithm) }
}

extension Backend {
  static func loadRing(_ lifetimes: BackendSettings.Lifetimes, from database: Database) throws -> KeyRing {
    var ring = KeyRing(lifetime: lifetimes.signingKey, overlap: lifetimes.keyOverlap)
    let entries = try database.rows("SELECT kid, algorithm, private_key, active_from FROM signing_keys") { row in
      guard let algorithm = SignatureAlgorithm(rawValue: row.text(1)) else { throw SigningKey.Failure.notAKey }
      let key = try SigningKey(privateBytes: row.blob(2).span.bytes, algorithm)
      return KeyRing.Entry(kid: row.text(0), key: key, activeFrom: row.integer(3))
    }
    for entry in entries { ring.add(entry) }
    return ring
  }

  /// Makes the keys that are due, forgets the spent ones.
  func rotateKeys() async throws {
    for algorithm in Set(TokenKind.allCases.map(\.algorithm)) where ring.due(algorithm, at: clock.seconds) != nil {
      let key = try await KeyMaker().make(algorithm)
      // Another may have done so meanwhile.
      guard let from = ring.due(algorithm, at: clock.seconds) else { continue }
      let entry = KeyRing.Entry(kid: RandomText.identifier(), key: key, activeFrom: from)
      try store(entry)
      ring.add(entry)
    }
    for kid in ring.removeSpent(at: clock.seconds) {
      try database.run("DELETE FROM signing_keys WHERE kid = ?", .text(kid))
    }
  }

  private func store(_ entry: KeyRing.Entry) throws {
    var bytes = try entry.key.privateBytes().withBytes { bytes in bytes.withUnsafeBytes { Array($0) } }
    defer { bytes.withUnsafeMutableBytes { SecretMemory.wipe($0) } }
    try database.run(
      "INSERT INTO signing_keys (kid, algorithm, private_key, active_from) VALUES (?, ?, ?, ?)", .text(entry.kid),
      .text(entry.key.algorithm.rawValue), .blob(bytes), .integer(entry.activeFrom))
  }

  /// The JWKS (RFC 7517).
  func keys() -> HTTPResponse {
    .json(["keys": .array(ring.accepted(at: clock.seconds).map(\.publicJSON))], maxAge: min(300, ring.overlap))
  }

  // MARK: Tokens

  /// A token with `claims` and those that all have. `expires` in seconds since 1970.
  func sign(_ kind: TokenKind, expires: Int64, audience: String? = nil, _ claims: [String: JSON]) throws -> String {
    let now = clock.seconds
    guard let entry = ring.active(kind.algorithm, at: now) else { throw SigningKey.Failure.library }
    let common: [String: JSON] = [
      "iss": .string(issuer), "aud": .string(audience ?? settings.audience), "iat": .integer(now),
      "exp": .integer(expires),
    ]
    return try JSONWebToken.signed(.object(common.merging(claims) { $1 }), kind, kid: entry.kid, entry.key)
  }

  /// The claims of a token of ours that is good now.
  func verify(_ token: String, _ kind: TokenKind) throws -> JSON {
    let now = clock.seconds
    let keys = JSONWebKeySet(ring.accepted(at: now).map { .init(identifier: $0.kid, key: $0.key.publicKey) })
    let policy = JSONWebTokenPolicy(
      issuer: issuer, audience: settings.audience, algorithms: [kind.algorithm], types: [kind.rawValue.lowercased()],
      leeway: 0)
    do {
      return JSON(try JSONWebToken(token, keys: keys, policy: policy, now: Double(now)).claims)
    } catch {
      throw TokenFault(error)
    }
  }
}
