import Foundation

/// What of the session is activated.
struct ActivatedSubscription: Sendable {
  let store: SessionStore
  let keeper: SessionKeeper
  let calls: BackendCalls
  let chain: TokenChain
  let feed: SubscriptionFeed
  let settings: KapeSDKSettings
  let clock: any SessionClock
  let logger: KapeLogger

  /// Chooses the first subscription that grants access and has what the product asks for, and keeps the choice with the
  /// session, for the tunnel too. A guest's access is in his receipt.
  ///
  /// - Throws: `KapeAuthError`; `KapeSubscriptionError`; `KapeSDKSettingsError`; what the store throws.
  func activate(_ product: KapeProductType) async throws {
    let entitlements = try product.entitlements(settings)
    guard let session = try await store.session() else { throw KapeAuthError.notSignedIn }
    switch session.kind {
    case .guest:
      guard try await chain.hasReceipt(for: entitlements) else { throw KapeSubscriptionError.noMatchingSubscription }
      try await keep(entitlements, nil, of: session.id)
    case .account:
      let subscriptions = try await keeper.callWithIdentityToken(of: session.id) { try await calls.subscriptions($0) }
      await feed.take(subscriptions, of: session.id)
      guard let subscription = subscriptions.first(withAnyOf: entitlements, at: clock.wallTime) else {
        throw KapeSubscriptionError.noMatchingSubscription
      }
      try await keep(entitlements, subscription, of: session.id)
    }
  }

  private func keep(_ entitlements: [String], _ subscription: KapeSubscription?, of id: UUID) async throws {
    try await store.exclusively { transaction in
      guard var session = try await transaction.session(), session.id == id else { throw KapeAuthError.notSignedIn }
      guard session.product != entitlements || session.activeSubscription != subscription else { return }
      session.product = entitlements
      session.activeSubscription = subscription
      try await transaction.save(session)
    }
  }

  /// Brings the choice up to date by a list that was fetched; gone from there, there is none any more.
  static func update(_ store: SessionStore, _ subscriptions: [KapeSubscription], of id: UUID) async throws {
    try await store.exclusively { transaction in
      guard var session = try await transaction.session(), session.id == id, let active = session.activeSubscription
      else { return }
      session.activeSubscription = subscriptions.first { $0.id == active.id }
      if session.activeSubscription != active { try await transaction.save(session) }
    }
  }
}
