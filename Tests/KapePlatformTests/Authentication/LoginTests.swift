import Foundation
import Synchronization
import Testing

@testable import KapePlatform

@Suite("§4: signing in and out") struct LoginTests {
  private let setup: SDKSetup
  private let client: KapeAuthClient

  init() throws {
    setup = try SDKSetup()
    client = KapeAuthClient(handle: try setup.handle())
  }

  @Test("by code, PKCE and the loopback redirect: state, session and subscriptions follow") func loopback() async throws
  {
    let states = PublisherRecord(client.authState)
    #expect(states.values == [.unauthenticated])
    #expect(client.lastKnownAuthenticationSession() == nil)
    try await client.login(presenting: setup.browser("alice"))
    #expect(states.values == [.unauthenticated, .authenticated])
    let session = KapeAuthenticationSession(
      userId: "alice", email: "alice@example.com", displayName: "alice@example.com", isGuest: false)
    #expect(client.lastKnownAuthenticationSession() == session)
    #expect(await client.currentAuthenticationSession() == session)
    let exchange = try #require(setup.backend.state.withLock { $0.requests.last { $0.url.path == "/token" } })
    #expect(ScriptedBackend.form(exchange)["code_verifier"]?.count == 43)
  }

  @Test("by handleCallbackURL, where the redirect is the app's own scheme") func callback() async throws {
    let setup = try SDKSetup(redirect: "com.example.app:/callback")
    let client = KapeAuthClient(handle: try setup.handle())
    var browser = setup.browser()
    browser.comeBack = { url in
      client.handleCallbackURL(URL(string: "com.example.app:/callback?code=x&state=guessed") ?? url)
      client.handleCallbackURL(url)
    }
    try await client.login(presenting: browser)
    #expect(client.lastKnownAuthenticationSession()?.userId == "u1")
    client.handleCallbackURL(try #require(URL(string: "com.example.app:/callback?code=late")))
  }

  @Test("the files are 0600 in 0700, and no token gets into a description") func files() async throws {
    try await client.login(presenting: setup.browser())
    let attributes = try FileManager.default.attributesOfItem(atPath: setup.sessionFolder + "/session")
    #expect(attributes[.posixPermissions] as? Int == 0o600)
    let folder = try FileManager.default.attributesOfItem(atPath: setup.sessionFolder)
    #expect(folder[.posixPermissions] as? Int == 0o700)
    let data = try Data(contentsOf: URL(fileURLWithPath: setup.sessionFolder + "/session"))
    let stored = try JSONDecoder().decode(StoredSession.self, from: data)
    var text = ""
    dump(stored, to: &text)
    #expect(stored.refreshToken == "r1" && !(text + "\(stored)" + String(reflecting: stored)).contains("eyJ"))
  }

  @Test("refused in the browser: denied; nobody is signed in") func denied() async throws {
    var browser = setup.browser()
    browser.change = { $0 = ["error": "access_denied", "state": $0["state"] ?? "", "iss": $0["iss"] ?? ""] }
    await #expect(throws: KapeAuthError.denied) { try await client.login(presenting: browser) }
    #expect(client.lastKnownAuthenticationSession() == nil)
  }

  @Test("an answer of another issuer, or without one, is not taken (RFC 9207)") func mixUp() async throws {
    for issuer in ["https://evil.example.com", nil] {
      var browser = setup.browser()
      browser.change = { $0["iss"] = issuer }
      await #expect(throws: KapeAuthError.self) { try await client.login(presenting: browser) }
    }
    #expect(setup.backend.count("/token") == 0)
  }

  @Test(
    "an ID token of another nonce, audience, subject, issuer, hash or time is not taken",
    arguments: [
      ["nonce": "other"], ["nonce": "(none)"], ["aud": "other-app"], ["iss": "https://evil.example.com"],
      ["sub": "(none)"],
      ["at_hash": "AAAA"], ["iat": "(none)"], ["azp": "other-app"],
    ])
  func wrongIDToken(_ claims: [String: String]) async throws {
    setup.backend.change { $0.claims = claims }
    let error = await #expect(throws: KapeAuthError.self) { try await client.login(presenting: setup.browser()) }
    guard case .invalidResponse = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(client.lastKnownAuthenticationSession() == nil)
    #expect(await client.currentAuthenticationSession() == nil)
  }

  @Test("keys that the issuer has changed since are fetched again, once") func rotatedKeys() async throws {
    try await client.login(presenting: setup.browser())
    #expect(setup.backend.count("/jwks") == 1)
    setup.backend.change { $0.keyIdentifier = "k2" }
    try await client.login(presenting: setup.browser())
    #expect(setup.backend.count("/jwks") == 2)
    setup.backend.change { $0.keyIdentifier = "k3" }
    await #expect(throws: KapeAuthError.self) { try await client.login(presenting: setup.browser()) }
    #expect(setup.backend.count("/jwks") == 3)
  }

  @Test("metadata is kept for an hour") func metadata() async throws {
    try await client.login(presenting: setup.browser())
    setup.clock.advance(by: .seconds(3599))
    try await client.login(presenting: setup.browser())
    #expect(setup.backend.count("/openid-configuration") == 1)
    setup.clock.advance(by: .seconds(2))
    try await client.login(presenting: setup.browser())
    #expect(setup.backend.count("/openid-configuration") == 2)
  }

  @Test("nobody comes back: after ten minutes it is over") func timeout() async throws {
    var browser = setup.browser()
    browser.comeBack = { _ in }
    let login = Task { [client, browser] in try await client.login(presenting: browser) }
    #expect(await eventually { setup.clock.timerCount == 1 })
    setup.clock.advance(by: .seconds(599))
    #expect(setup.clock.timerCount == 1)
    setup.clock.advance(by: .seconds(1))
    await #expect(throws: KapeAuthError.timedOut) { try await login.value }
  }

  @Test("a second sign-in takes the place of the first; a task that is cancelled ends its own") func superseded()
    async throws
  {
    let opened = Mutex(0)
    var waiting = setup.browser()
    waiting.comeBack = { _ in opened.withLock { $0 += 1 } }
    let first = Task { [client, waiting] in try await client.login(presenting: waiting) }
    #expect(await eventually { opened.withLock { $0 } == 1 })
    try await client.login(presenting: setup.browser("second"))
    await #expect(throws: KapeAuthError.superseded) { try await first.value }
    #expect(client.lastKnownAuthenticationSession()?.userId == "second")
    let third = Task { [client, waiting] in try await client.login(presenting: waiting) }
    #expect(await eventually { opened.withLock { $0 } == 2 })
    third.cancel()
    await #expect(throws: CancellationError.self) { try await third.value }
  }

  @Test("a presenter that fails ends it, with its error") func presenter() async throws {
    struct Broken: KapeAuthPresenter {
      func open(_ url: URL) async throws { throw KapeAuthError.presenterFailed("no browser") }
    }
    await #expect(throws: KapeAuthError.presenterFailed("no browser")) { try await client.login(presenting: Broken()) }
  }

  @Test("the issuer cannot be reached, refuses, or wants to be left alone: each is told by its own error") func faults()
    async throws
  {
    setup.backend.fail(
      "/openid-configuration", .network, .status(503, [:]), .status(429, ["retry-after": "120"]), .body("{}"))
    var errors: [KapeAuthError] = []
    for _ in 0..<4 {
      do { try await client.login(presenting: setup.browser()) } catch let error as KapeAuthError {
        errors.append(error)
      }
    }
    guard errors.count == 4, case .network = errors[0], case .unavailable(503) = errors[1],
      case .rateLimited(let until) = errors[2], case .invalidResponse = errors[3]
    else {
      Issue.record("\(errors)")
      return
    }
    #expect(until == setup.clock.wallTime + 120)
    setup.backend.fail("/token", .status(400, [:]))
    await #expect(throws: KapeAuthError.self) { try await client.login(presenting: setup.browser()) }
  }

  @Test("logout: the session is gone here and at the issuer, also when that cannot be reached") func logout()
    async throws
  {
    let states = PublisherRecord(client.authState)
    try await client.login(presenting: setup.browser())
    try await client.logout()
    #expect(states.values == [.unauthenticated, .authenticated, .unauthenticated])
    #expect(client.lastKnownAuthenticationSession() == nil)
    #expect(await client.currentAuthenticationSession() == nil)
    #expect(setup.backend.state.withLock { $0.revoked } == ["r1"])
    try await client.login(presenting: setup.browser())
    setup.backend.fail("/revoke", .network)
    try await client.logout()
    #expect(client.lastKnownAuthenticationSession() == nil)
    try await client.logout()
    #expect(!FileManager.default.fileExists(atPath: setup.sessionFolder + "/session"))
  }

  @Test("another account takes the place of the one before, whose session ends at the issuer") func accountSwitch()
    async throws
  {
    try await client.login(presenting: setup.browser("alice"))
    try await client.login(presenting: setup.browser("bob"))
    #expect(client.lastKnownAuthenticationSession()?.userId == "bob")
    #expect(setup.backend.state.withLock { $0.revoked } == ["r1"])
  }

  @Test("a session of other settings is not used, and stays where it is") func otherSettings() async throws {
    try await client.login(presenting: setup.browser())
    let other = KapeAuthClient(handle: try setup.handle(nil) { $0.clientId = "another-app" })
    #expect(other.lastKnownAuthenticationSession() == nil)
    #expect(await other.currentAuthenticationSession() == nil)
    #expect(client.lastKnownAuthenticationSession() != nil)
  }
}
