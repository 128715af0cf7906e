import Foundation
import Testing

@testable import KapePlatform

@Suite("§3.3: guests") struct GuestTests {
  private let setup: SDKSetup
  private let handle: KapeSdkHandle
  private let client: KapeAuthClient

  init() throws {
    setup = try SDKSetup()
    handle = try setup.handle()
    client = KapeAuthClient(handle: handle)
  }

  @Test("loginAsGuest makes an identity without asking anybody: no e-mail, no display name") func identity()
    async throws
  {
    let states = PublisherRecord(client.authState)
    try await client.loginAsGuest()
    let session = try #require(await client.currentAuthenticationSession())
    #expect(session.isGuest && session.email == nil && session.displayName == nil)
    #expect(session.userId.hasPrefix("guest-") && session.userId.utf8.count == 28)
    #expect(states.values == [.unauthenticated, .authenticated])
    #expect(setup.backend.state.withLock { $0.requests.isEmpty })
  }

  @Test("subscriptions go straight to [], nothing is fetched, and nothing later either") func subscriptions()
    async throws
  {
    let lists = PublisherRecord(client.subscriptions)
    try await client.loginAsGuest()
    #expect(lists.values == [nil, []])
    setup.clock.advance(by: .seconds(7 * 3600))
    await settle()
    #expect(lists.values == [nil, []])
    #expect(setup.backend.count("/subscriptions") == 0)
    #expect(lists.last??.active == nil)
  }

  @Test("a guest who signs in as one again stays the same, also in another process; another device has another one")
  func sameGuest() async throws {
    try await client.loginAsGuest()
    let first = client.lastKnownAuthenticationSession()
    try await client.loginAsGuest()
    #expect(client.lastKnownAuthenticationSession() == first)
    let process = KapeAuthClient(handle: try setup.handle())
    try await process.loginAsGuest()
    #expect(process.lastKnownAuthenticationSession() == first)
    let elsewhere = try SDKSetup()
    let other = KapeAuthClient(handle: try elsewhere.handle())
    try await other.loginAsGuest()
    #expect(other.lastKnownAuthenticationSession() != first)
  }

  @Test("to connect, the backend takes the guest's secret for an identity token of the same user") func connecting()
    async throws
  {
    try await client.loginAsGuest()
    try await handle.activateSubscription(for: .vpn)
    #expect(handle.activeSubscription == nil)
    let token = try await handle.connectionToken()
    #expect(token.split(separator: ".").count == 3)
    let grants = setup.backend.state.withLock { $0.requests.filter { $0.url.path == "/token" } }
    #expect(grants.count == 1)
    #expect(ScriptedBackend.form(try #require(grants.first))["grant_type"] == "urn:kape:params:oauth:grant-type:guest")
    #expect(setup.backend.count("/subscriptions") == 0)
  }

  @Test("a guest whose receipt carries nothing of the product cannot activate it") func notEntitled() async throws {
    setup.backend.change { $0.receipts = [["xv.free"]] }
    try await client.loginAsGuest()
    await #expect(throws: KapeSubscriptionError.noMatchingSubscription) {
      try await handle.activateSubscription(for: .vpn)
    }
    try await handle.activateSubscription(for: .custom(values: ["other", "xv.free"]))
  }

  @Test("a renewal that names somebody else is not taken") func somebodyElse() async throws {
    try await client.loginAsGuest()
    setup.backend.change { $0.claims = ["sub": "guest-other"] }
    await #expect(throws: KapeAuthError.self) { try await handle.identityToken() }
    setup.backend.change { $0.claims = [:] }
    _ = try await handle.identityToken()
  }
}
