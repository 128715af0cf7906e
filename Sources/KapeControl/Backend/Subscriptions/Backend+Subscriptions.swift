import KapeCrypto

extension Backend {
  /// Of a user, in their order.
  func subscriptions(of user: String) throws -> [Subscription] {
    try database.rows(
      """
      SELECT id, status, source, tier, current_term_end, next_billing_at, cancelled_at, billing_unit, billing_count,
        last_payment_failed, is_business, entitlements
      FROM subscriptions WHERE user = ? ORDER BY position
      """, .text(user), map: Self.subscription)
  }

  private static func subscription(_ row: Database.Row) throws -> Subscription {
    guard let status = SubscriptionStatus(rawValue: row.text(1)),
      let entitlements = try? JSON(parsing: row.blob(11)).strings
    else { throw DatabaseError(code: 0, reason: "a subscription is damaged") }
    return Subscription(
      id: row.text(0), recorded: status, source: row.text(2), tier: row.text(3),
      currentTermEnd: row.optionalInteger(4), nextBillingAt: row.optionalInteger(5),
      cancelledAt: row.optionalInteger(6),
      billing: row.optionalText(7).map { BillingPeriod(unit: $0, count: row.integer(8)) },
      lastAutoBillPaymentFailed: row.bool(9), isBusiness: row.bool(10), entitlements: entitlements)
  }

  func subscriptions(_ request: HTTPRequest) throws -> HTTPResponse {
    let identity = try identity(request)
    try limit(.subscriptions, identity.user)
    let all = identity.isGuest ? [] : try subscriptions(of: identity.user)
    return .json(["subscriptions": .array(all.map { $0.json(at: clock.seconds) })])
  }

  /// One receipt for each subscription that grants access.
  func receipts(_ request: HTTPRequest) throws -> HTTPResponse {
    try ClientHeaders.check(request)
    let identity = try identity(request)
    try limit(.receipts, identity.user)
    let now = clock.seconds
    let latest = now + settings.lifetimes.receipt
    let receipts: [String]
    if identity.isGuest {
      receipts = [
        try receipt(identity.user, expires: latest, tier: settings.guests.tier, settings.guests.entitlements, nil)
      ]
    } else {
      receipts = try subscriptions(of: identity.user).filter { $0.grantsAccess(at: now) }.map { subscription in
        try receipt(
          identity.user, expires: subscription.end(noLaterThan: latest), tier: subscription.tier,
          subscription.entitlements, subscription.id)
      }
    }
    return .json(.strings(receipts), type: "application/jwt")
  }

  private func receipt(
    _ user: String, expires: Int64, tier: String, _ entitlements: [String], _ subscription: String?
  ) throws -> String {
    var claims: [String: JSON] = [
      "sub": .string(user), "tier": .string(tier), "entitlements": .strings(entitlements),
      "jti": .string(RandomText.identifier()),
    ]
    if let subscription { claims["subscription_id"] = .string(subscription) }
    return try sign(.receipt, expires: expires, claims)
  }

  /// An anonymous connection token for a receipt that has the VPN's entitlement.
  func connectionToken(_ request: HTTPRequest) throws -> HTTPResponse {
    try ClientHeaders.check(request)
    let claims = try verify(try bearer(request), .receipt)
    guard let user = claims["sub"]?.string, let entitlements = claims["entitlements"]?.strings else {
      throw TokenFault.malformed
    }
    try limit(.connectionToken, user)
    guard entitlements.contains(settings.vpnEntitlement) else {
      throw Refusal(403, .notEntitled, "the receipt does not carry the entitlement \(settings.vpnEntitlement)")
    }
    let now = clock.seconds
    var expires = now + settings.lifetimes.connectionToken
    if let id = claims["subscription_id"]?.string {
      guard let subscription = try subscriptions(of: user).first(where: { $0.id == id }),
        subscription.grantsAccess(at: now)
      else { throw Refusal(403, .subscriptionEnded, "the subscription of the receipt has ended") }
      expires = subscription.end(noLaterThan: expires)
    }
    let token = try sign(
      .connection, expires: expires,
      [
        "entitlements": .strings(entitlements), "holder": .strings(try holders(of: user)),
        "jti": .string(RandomText.identifier()),
      ])
    return .text(token, type: "application/json")
  }

  /// Two pseudonyms of a user: this period's and the one's before. Both together connect what he has from either, as
  /// long as nothing lasts longer than a period; the keys that they are made with are deleted, and then they lead
  /// nowhere.
  private func holders(of user: String) throws -> [String] {
    let period = clock.seconds / settings.lifetimes.holder
    return try database.transaction {
      try database.run("DELETE FROM holder_keys WHERE period < ?", .integer(period - 1))
      return try [period, period - 1].map { period in
        try database.run(
          "INSERT INTO holder_keys (period, key) VALUES (?, ?) ON CONFLICT DO NOTHING", .integer(period),
          .blob(SecretMemory.randomBytes(32)))
        let key = try database.row(
          "SELECT key FROM holder_keys WHERE period = ?", .integer(period), map: { $0.blob(0) })
        return Base64URL.encode(Array(SHA256.authenticate(Array(user.utf8), key: key ?? [])[..<16]))
      }
    }
  }
}

/// What every app tells of itself when it asks for tokens.
enum ClientHeaders {
  private static let choices: [(name: String, values: [String])] = [
    ("x-client-device-model", ["desktop", "mobile", "tablet", "firetv", "appletv"]),
    ("x-client-os", ["windows", "macos", "linux", "android", "ios", "web"]),
  ]
  private static let texts = ["x-client-app-version", "x-client-os-version", "x-sdk-version"]

  static func check(_ request: HTTPRequest) throws {
    for name in texts {
      guard let value = request.header(name), (1...64).contains(value.utf8.count) else {
        throw Refusal(400, .invalidHeader, "the field \(name) with 1 to 64 bytes is wanted")
      }
    }
    for (name, values) in choices where !values.contains(request.header(name) ?? "") {
      throw Refusal(400, .invalidHeader, "the field \(name) must be one of \(values.joined(separator: ", "))")
    }
  }
}
