import KapeCrypto

/// Puts into a database what the settings name and it does not have yet. What is there already stays as it is.
package struct Seeding {
  /// What was made, to be shown once.
  package struct Made: Sendable, Equatable {
    package struct User: Sendable, Equatable {
      package var email: String
      package var password: String
    }
    package struct DedicatedIP: Sendable, Equatable {
      package var ip: String
      package var token: String
    }

    package var users: [User] = []
    package var dedicatedIPs: [DedicatedIP] = []
    package var isEmpty: Bool { users.isEmpty && dedicatedIPs.isEmpty }
  }

  let settings: BackendSettings
  let state: StateDirectory
  let hasher: PasswordHasher
  let now: Int64

  /// The credentials are on the disk before the database refers to them, so that a killed start loses none.
  func run(missing: Missing) async throws -> (Made, [(SeedUser, hash: String)]) {
    var credentials = try Credentials(in: state)
    var made = Made()
    var hashed: [(SeedUser, hash: String)] = []
    for user in missing.users {
      let password = credentials.password(of: user.email)
      made.users.append(.init(email: user.email, password: password))
      hashed.append((user, try await hasher.hash(password)))
    }
    for dedicated in missing.dedicatedIPs {
      made.dedicatedIPs.append(.init(ip: dedicated.ip, token: credentials.token(ofDedicatedIP: dedicated.ip)))
    }
    if !made.isEmpty { try credentials.save() }
    return (made, hashed)
  }

  struct Missing: Sendable {
    var users: [SeedUser]
    var dedicatedIPs: [DedicatedIP]
  }

  static func missing(_ settings: BackendSettings, in database: Database) throws -> Missing {
    Missing(
      users: try settings.users.filter { user in
        try database.row("SELECT 1 FROM users WHERE email = ?", .text(user.email)) { _ in true } == nil
      },
      dedicatedIPs: try settings.dedicatedIPs.filter { dedicated in
        try database.row("SELECT 1 FROM dedicated_ips WHERE ip = ?", .text(dedicated.ip)) { _ in true } == nil
      })
  }

  func insert(_ made: Made, _ hashed: [(SeedUser, hash: String)], into database: Database) throws {
    try database.transaction {
      for (user, hash) in hashed {
        let id = "user-" + RandomText.identifier()
        try database.run(
          "INSERT INTO users (id, email, name, password_hash, created) VALUES (?, ?, ?, ?, ?)", .text(id),
          .text(user.email), .text(user.name), .text(hash), .integer(now))
        for (position, subscription) in user.subscriptions.enumerated() {
          try insert(subscription, of: id, at: Int64(position), into: database)
        }
      }
      for dedicated in made.dedicatedIPs {
        let ends = settings.dedicatedIPs.first { $0.ip == dedicated.ip }?.endsIn ?? 0
        try database.run(
          "INSERT INTO dedicated_ips (hash, ip, expires) VALUES (?, ?, ?)",
          .blob(SHA256.hash(Array(dedicated.token.utf8))),
          .text(dedicated.ip), .integer(now + ends))
      }
    }
  }

  private func insert(
    _ subscription: SeedSubscription, of user: String, at position: Int64, into database: Database
  ) throws {
    try database.run(
      """
      INSERT INTO subscriptions (id, user, position, status, source, tier, current_term_end, next_billing_at,
        cancelled_at, billing_unit, billing_count, last_payment_failed, is_business, entitlements)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      """,
      .text("subscription-" + RandomText.identifier()), .text(user), .integer(position),
      .text(subscription.status.rawValue), .text(subscription.source), .text(subscription.tier),
      .optional(subscription.termEndsIn.map { now + $0 }), .optional(subscription.nextBillingIn.map { now + $0 }),
      .optional(subscription.cancelledIn.map { now + $0 }), .optional(subscription.billing?.unit),
      .optional(subscription.billing?.count), .bool(subscription.lastAutoBillPaymentFailed),
      .bool(subscription.isBusiness), .text(JSON.strings(subscription.entitlements).text))
  }
}
