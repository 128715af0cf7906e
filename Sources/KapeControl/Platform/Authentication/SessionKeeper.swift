import Foundation
import KapeCrypto

/// Keeps a session usable: gives its identity token, and renews that when it is used up, once for all tasks and all
/// processes. The order in which a renewal is written down, and why, is in docs/session.md.
actor SessionKeeper {
  private let store: SessionStore
  private let issuer: Issuer
  private let settings: KapeSDKSettings
  private let clock: any SessionClock
  private let logger: KapeLogger
  private let changed: @Sendable (SessionChange) async -> Void
  private var renewal: Task<String, any Error>?

  init(
    _ store: SessionStore, issuer: Issuer, settings: KapeSDKSettings, clock: any SessionClock, logger: KapeLogger,
    changed: @escaping @Sendable (SessionChange) async -> Void
  ) {
    self.store = store
    self.issuer = issuer
    self.settings = settings
    self.clock = clock
    self.logger = logger
    self.changed = changed
  }

  /// An identity token that is good for a while yet.
  ///
  /// - Parameters:
  ///   - rejected: one that the backend does not take any more, although it has not expired.
  ///   - wanted: the session of which it has to be; nil: of whoever is signed in.
  /// - Throws: `KapeAuthError`; what the store throws.
  func identityToken(rejected: String? = nil, of wanted: UUID? = nil) async throws -> String {
    guard let session = try await store.session(), wanted == nil || session.id == wanted else {
      throw KapeAuthError.notSignedIn
    }
    if let token = usableToken(session, rejected) { return token }
    if let renewal {
      let token = try await renewal.value
      guard token == rejected else {
        if let wanted, try await store.session()?.id != wanted { throw KapeAuthError.notSignedIn }
        return token
      }
      return try await identityToken(rejected: rejected, of: wanted)
    }
    // A task of its own: who asked may give up, and the answer is to be stored all the same.
    let task = Task {
      defer { self.renewal = nil }
      return try await self.renew(rejected)
    }
    renewal = task
    return try await task.value
  }

  private nonisolated func usableToken(_ session: StoredSession, _ rejected: String?) -> String? {
    guard let token = session.accessToken, token != rejected,
      TokenLifetime.isGood(session.accessTokenExpiry, at: clock.wallTime)
    else { return nil }
    return token
  }

  private func renew(_ rejected: String?) async throws -> String {
    let outcome = try await store.exclusively { transaction in
      // What another process has done while this one waited.
      guard let session = try await transaction.session() else { throw KapeAuthError.notSignedIn }
      if let token = self.usableToken(session, rejected) { return Renewal.found(token) }
      return try await self.renew(session, transaction)
    }
    switch outcome {
    case .found(let token): return token
    case .renewed(let session, let token):
      await changed(.renewed(session))
      return token
    case .ended(let order):
      logger.warning("the issuer has ended the session")
      await changed(.ended(order))
      throw KapeAuthError.sessionEnded
    }
  }

  private enum Renewal: Sendable {
    case found(String)
    case renewed(StoredSession, String)
    case ended(UInt64)
  }

  private nonisolated func renew(
    _ session: StoredSession, _ transaction: SessionStore.Transaction
  ) async throws -> Renewal {
    var session = session
    if let until = session.renewalBlockedUntil, clock.wallTime < until { throw KapeAuthError.rateLimited(until: until) }
    let grant: TokenGrant
    do {
      switch session.kind {
      case .guest: grant = try await issuer.guest(session.guestSecret ?? "")
      case .account:
        guard let token = session.refreshToken else { throw KapeAuthError.sessionEnded }
        let attempt = session.refreshAttempt ?? Base64URL.encode(SecretMemory.randomBytes(16))
        if session.refreshAttempt == nil {
          session.refreshAttempt = attempt
          try await transaction.save(session)
        }
        grant = try await issuer.refresh(token, attempt: attempt)
      }
      try check(grant, of: session)
    } catch KapeAuthError.sessionEnded, KapeAuthError.refused(code: "invalid_grant", _) {
      try await transaction.remove()
      return .ended(transaction.order)
    } catch KapeAuthError.rateLimited(let until) {
      session.renewalBlockedUntil = until
      try await transaction.save(session)
      throw KapeAuthError.rateLimited(until: until)
    }
    session.take(grant, at: clock.wallTime)
    try await transaction.save(session)
    return .renewed(session, grant.accessToken)
  }

  /// Where a renewal brings an ID token, it has to be of the same person (OpenID Connect Core 1.0, section 12.2). Its
  /// signature is not checked: it came from the issuer itself by TLS (section 3.1.3.7, rule 6), and to fetch keys now
  /// could fail between the new token's coming and its being stored.
  private nonisolated func check(_ grant: TokenGrant, of session: StoredSession) throws(KapeAuthError) {
    guard let idToken = grant.idToken else { return }
    guard let token = try? JSONWebToken(unverified: idToken), let subject = token.subject,
      subject.utf8.elementsEqual(session.userId.utf8), token.issuer == nil || token.issuer == session.issuer
    else { throw .invalidResponse("a renewal brought the ID token of somebody else") }
  }
}

/// What has become of the session, and when, by the store's order.
enum SessionChange: Sendable {
  case began(StoredSession, UInt64)
  case renewed(StoredSession)
  case ended(UInt64)
}

extension StoredSession {
  mutating func take(_ grant: TokenGrant, at now: Date) {
    accessToken = grant.accessToken
    accessTokenExpiry = TokenLifetime.expiry(of: grant.accessToken, receivedAt: now, expiresIn: grant.expiresIn)
    // An issuer that does not rotate sends none, and the old one stays good.
    if let token = grant.refreshToken { refreshToken = token }
    refreshAttempt = nil
    renewalBlockedUntil = nil
  }
}
