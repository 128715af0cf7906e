public import Combine
public import Foundation
import KapeCrypto

/// Signs somebody in and out, and tells who is. Clients of the same handle show the same.
public final class KapeAuthClient: Sendable {
  private let core: SdkCore

  public init(handle: KapeSdkHandle) {
    core = handle.core
    core.follow()
  }

  /// Whether somebody is signed in; now, and whenever it changes, in this process or another.
  public var authState: AnyPublisher<KapeAuthState, Never> { core.account.authState }

  /// The subscriptions, expired ones too. nil until they were fetched for the current session, and while nobody is signed
  /// in; empty for guests. It keeps itself up to date.
  public var subscriptions: AnyPublisher<[KapeSubscription]?, Never> { core.account.subscriptions }

  /// Signs in by a page of the issuer's (OpenID Connect, authorization code with PKCE), which `presenter` shows. Returns when
  /// the tokens are stored. The session of whoever was signed in before ends.
  ///
  /// - Throws: `KapeAuthError`; `CancellationError`; what the store throws.
  public func login(presenting presenter: any KapeAuthPresenter = XDGOpenPresenter()) async throws {
    let metadata = try await core.issuer.discover()
    let (code, request) = try await core.browser.code(metadata, core.settings, presenter: presenter)
    let grant = try await core.issuer.exchange(code, of: request)
    try await begin(try await session(grant, request))
  }

  /// Makes an identity on this device, without an account and without asking anybody. Somebody who is a guest already
  /// stays the same one; the session of an account ends.
  ///
  /// - Throws: what the store throws.
  public func loginAsGuest() async throws {
    if try await core.store.session()?.kind == .guest { return }
    let secret = SecretMemory.randomBytes(GuestIdentity.secretSize)
    var session = StoredSession(
      kind: .guest, issuer: core.settings.issuerURL.absoluteString, clientId: core.settings.clientId,
      userId: GuestIdentity.userId(of: secret))
    session.guestSecret = Base64URL.encode(secret)
    try await begin(session)
  }

  /// Hands over the redirect URL, where the system gives it to the app. A URL that no sign-in waits for is not used.
  public func handleCallbackURL(_ url: URL) { core.browser.handle(url) }

  /// Who is signed in, with tokens that are good now; renewed if need be. nil: nobody, or one whose session has ended or
  /// could not be renewed. A guest is one without asking anybody.
  public func currentAuthenticationSession() async -> KapeAuthenticationSession? {
    do {
      guard let session = try await core.store.session() else { return nil }
      if session.kind == .account {
        _ = try await core.keeper.identityToken()
        guard try await core.store.session()?.id == session.id else { return nil }
      }
      return KapeAuthenticationSession(session)
    } catch {
      core.logger.info("no session: \(loggable(error))")
      return nil
    }
  }

  /// Who was signed in last, as it is stored: nothing is checked, and nobody asked.
  public func lastKnownAuthenticationSession() -> KapeAuthenticationSession? {
    (try? core.store.sessionNow()).map { KapeAuthenticationSession($0) }
  }

  /// Signs out: the session is gone here, and ended at the issuer if that can be reached. A guest's identity is gone for
  /// good.
  ///
  /// - Throws: what the store throws.
  public func logout() async throws {
    let (session, order) = try await core.store.exclusively { transaction in
      let session = try await transaction.session()
      try await transaction.remove()
      return (session, transaction.order)
    }
    await core.changed(.ended(order))
    await revoke(session)
  }

  private func begin(_ session: StoredSession) async throws {
    let (before, order) = try await core.store.exclusively { transaction in
      let before = try? await transaction.session()
      try await transaction.begin(session)
      return (before, transaction.order)
    }
    await core.changed(.began(session, order))
    await revoke(before)
  }

  private func session(_ grant: TokenGrant, _ request: AuthorizationRequest) async throws -> StoredSession {
    guard let idToken = grant.idToken else { throw KapeAuthError.invalidResponse("it gave no ID token") }
    let identity = try await core.issuer.verify(idToken) { metadata in
      IDToken.Expectation(
        issuer: metadata.issuer, clientId: core.settings.clientId, nonce: request.nonce, accessToken: grant.accessToken)
    }
    var session = StoredSession(
      kind: .account, issuer: core.settings.issuerURL.absoluteString, clientId: core.settings.clientId,
      userId: identity.subject, email: identity.email, displayName: identity.email ?? identity.name)
    session.take(grant, at: core.clock.wallTime)
    return session
  }

  /// Tells the issuer that a session has ended. One that cannot be told keeps a refresh token that nobody has any more.
  private func revoke(_ session: StoredSession?) async {
    guard let token = session?.refreshToken else { return }
    do {
      try await core.issuer.revoke(token)
    } catch {
      core.logger.warning("the issuer was not told that a session has ended: \(loggable(error))")
    }
  }
}
