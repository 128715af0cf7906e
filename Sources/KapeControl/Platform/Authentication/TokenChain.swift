import Foundation
import KapeCrypto

/// Identity token, subscription receipt, connection token: each is fetched with the one before, kept until it expires,
/// for all processes of the group, and fetched by one of them at a time. Nothing is asked with a token that has expired,
/// and nothing before the time that the backend has named.
struct TokenChain: Sendable {
  let store: SessionStore
  let keeper: SessionKeeper
  let calls: BackendCalls
  let clock: any SessionClock

  /// What a connection is authenticated with. It is anonymous: it names neither user nor subscription.
  ///
  /// - Throws: `KapeAuthError`; `KapeSubscriptionError`; `KapeSDKSettingsError.missingKey`; what the store throws.
  func connectionToken() async throws -> String {
    let session = try await self.session()
    guard let product = session.product else { throw KapeSubscriptionError.notActivated }
    if let token = try await kept(session, product) { return token }
    return try await store.fetchingTokens {
      // Another process may have fetched it meanwhile.
      if let token = try await kept(session, product) { return token }
      do {
        return try await fetchConnectionToken(session, product, isFresh: false)
      } catch BackendCalls.Refusal.token {
        // The receipt was good by its expiry and is not: the subscription has changed, say. Once with a new one.
        return try await fetchConnectionToken(session, product, isFresh: true)
      }
    }
  }

  /// Whether a receipt carries one of these entitlements: for guests, who have no subscriptions.
  func hasReceipt(for product: [String]) async throws -> Bool {
    let session = try await self.session()
    return try await store.fetchingTokens { try await receipt(session, product, isFresh: true) != nil }
  }

  private func session() async throws -> StoredSession {
    guard let session = try await store.session() else { throw KapeAuthError.notSignedIn }
    return session
  }

  private func kept(_ session: StoredSession, _ product: [String]) async throws -> String? {
    guard let token = try await store.tokens(of: session).connection, token.product == product,
      TokenLifetime.isGood(token.expiry, at: clock.wallTime)
    else { return nil }
    return token.text
  }

  private func fetchConnectionToken(
    _ session: StoredSession, _ product: [String], isFresh: Bool
  ) async throws -> String {
    guard let receipt = try await receipt(session, product, isFresh: isFresh) else {
      throw KapeSubscriptionError.noMatchingSubscription
    }
    let text: String
    do {
      text = try await asking(.connectionTokens, session) { try await calls.connectionToken(receipt.text) }
    } catch BackendCalls.Refusal.entitlement {
      throw KapeSubscriptionError.noMatchingSubscription
    } catch BackendCalls.Refusal.token where isFresh {
      throw KapeAuthError.refused(code: "invalid_token", reason: "a receipt that has just been given is not taken")
    }
    guard let expiry = TokenLifetime.expiry(of: text, receivedAt: clock.wallTime) else {
      throw KapeAuthError.invalidResponse("a connection token without an expiry")
    }
    var tokens = try await store.tokens(of: session)
    tokens.connection = StoredTokens.ConnectionToken(text: text, expiry: expiry, product: product)
    try await store.save(tokens)
    return text
  }

  /// The first that carries one of the entitlements.
  private func receipt(
    _ session: StoredSession, _ product: [String], isFresh: Bool
  ) async throws -> StoredTokens.Receipt? {
    func match(_ receipts: [StoredTokens.Receipt]) -> StoredTokens.Receipt? {
      receipts.first {
        TokenLifetime.isGood($0.expiry, at: clock.wallTime) && !Set($0.entitlements).isDisjoint(with: product)
      }
    }
    if !isFresh, let receipt = match(try await store.tokens(of: session).receipts) { return receipt }
    let texts = try await asking(.receipts, session) {
      try await keeper.callWithIdentityToken(of: session.id) { try await calls.receipts($0) }
    }
    var tokens = try await store.tokens(of: session)
    tokens.receipts = texts.compactMap { StoredTokens.Receipt($0, receivedAt: clock.wallTime) }
    tokens.connection = nil
    try await store.save(tokens)
    return match(tokens.receipts)
  }

  /// Asks, unless the backend has said not to; and remembers when it says so now.
  private func asking<Answer: Sendable>(
    _ path: BackendCalls.Path, _ session: StoredSession, _ ask: @Sendable () async throws -> Answer
  ) async throws -> Answer {
    if let until = try await store.tokens(of: session).blocked[path.rawValue], clock.wallTime < until {
      throw KapeAuthError.rateLimited(until: until)
    }
    do {
      return try await ask()
    } catch KapeAuthError.rateLimited(let until) {
      var tokens = try await store.tokens(of: session)
      tokens.blocked[path.rawValue] = until
      try await store.save(tokens)
      throw KapeAuthError.rateLimited(until: until)
    }
  }
}

extension StoredTokens.Receipt {
  /// nil: it cannot be read, or does not say when it expires. It is passed over then.
  fileprivate init?(_ text: String, receivedAt now: Date) {
    guard let token = try? JSONWebToken(unverified: text), let expiry = TokenLifetime.expiry(of: text, receivedAt: now)
    else { return nil }
    self.init(
      text: text, expiry: expiry, entitlements: token.claims["entitlements"]?.strings ?? [],
      subscriptionId: token.claims["subscription_id"]?.string)
  }
}

extension SessionKeeper {
  /// Asks with an identity token; once more with a new one when the backend does not take that.
  func callWithIdentityToken<Answer: Sendable>(
    of session: UUID? = nil, _ ask: @Sendable (String) async throws -> Answer
  ) async throws -> Answer {
    let token = try await identityToken(of: session)
    do {
      return try await ask(token)
    } catch BackendCalls.Refusal.token {
      do {
        return try await ask(try await identityToken(rejected: token, of: session))
      } catch BackendCalls.Refusal.token {
        throw KapeAuthError.refused(code: "invalid_token", reason: "the backend does not take the issuer's tokens")
      }
    }
  }
}
