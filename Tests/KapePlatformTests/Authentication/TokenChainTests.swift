import Foundation
import Testing

@testable import KapePlatform

@Suite("§3.5: identity token, receipt, connection token") struct TokenChainTests {
  private let setup: SDKSetup
  private let handle: KapeSdkHandle
  private let client: KapeAuthClient

  init() async throws {
    setup = try SDKSetup()
    handle = try setup.handle()
    client = KapeAuthClient(handle: handle)
    setup.backend.change { state in
      state.subscriptions = [
        KapeSubscription(id: "s1", status: .active, source: "web", tier: "premium", entitlements: ["xv.vpn"])
      ]
      state.receipts = [["xv.other"], ["xv.vpn", "xv.dip"], ["xv.vpn"]]
    }
  }

  private func signIn() async throws {
    try await client.login(presenting: setup.browser())
    try #require(await eventually { setup.backend.count("/subscriptions") == 1 && setup.clock.timerCount == 1 })
    try await handle.activateSubscription(for: .vpn)
  }

  private var receipts: Int { setup.backend.count("/subscription_receipts") }
  private var connections: Int { setup.backend.count("/connection_tokens") }

  @Test("each is fetched with the one before, and kept until its expiry; the first receipt that fits is used")
  func kept()
    async throws
  {
    try await signIn()
    let first = try await handle.connectionToken()
    #expect(receipts == 1 && connections == 1)
    setup.clock.advance(by: .seconds(884))
    #expect(try await handle.connectionToken() == first)
    #expect(receipts == 1 && connections == 1)
    // The connection token (900 s) is used up, the receipt (3,600 s) is not.
    setup.clock.advance(by: .seconds(1))
    let second = try await handle.connectionToken()
    #expect(second != first && receipts == 1 && connections == 2)
    // Now the receipt is, and the identity token with it.
    setup.clock.advance(by: .seconds(2701))
    _ = try await handle.connectionToken()
    #expect(receipts == 2 && connections == 3)
    let asked = setup.backend.state.withLock { $0.requests.last { $0.url.path.hasSuffix("/connection_tokens") } }
    let receipt = try #require(asked?.fields["authorization"]).dropFirst("Bearer ".count)
    #expect(receipt.contains("eyJ"))
  }

  @Test("nothing is ever asked with a token that has expired") func neverExpired() async throws {
    try await signIn()
    setup.backend.change { state in
      state.gate = { [clock = setup.clock] request in
        guard let bearer = request.fields["authorization"]?.dropFirst("Bearer ".count) else { return }
        let expiry = TokenLifetime.expiry(of: String(bearer), receivedAt: clock.wallTime)
        #expect(expiry.map { $0 > clock.wallTime } == true, "\(request.url.path)")
      }
    }
    for _ in 0..<40 {
      _ = try await handle.connectionToken()
      setup.clock.advance(by: .seconds(397))
    }
    #expect(connections > 10 && receipts > 3)
  }

  @Test("the required headers are on both") func headers() async throws {
    let handle = try setup.handle { $0.appVersion = "4.5.6" }
    let client = KapeAuthClient(handle: handle)
    try await client.login(presenting: setup.browser())
    try await handle.activateSubscription(for: .vpn)
    _ = try await handle.connectionToken()
    for path in ["/subscription_receipts", "/connection_tokens"] {
      let request = try #require(setup.backend.state.withLock { $0.requests.last { $0.url.path.hasSuffix(path) } })
      #expect(request.method == .post && request.fields["x-client-app-version"] == "4.5.6")
      #expect(request.fields["x-client-device-model"] == "desktop" && request.fields["x-client-os"] == "linux")
      #expect(
        request.fields["x-client-os-version"]?.isEmpty == false && request.fields["x-sdk-version"]?.isEmpty == false)
    }
  }

  @Test("tasks and processes of the group share them: one request of each kind") func shared() async throws {
    try await signIn()
    let process = try setup.handle()
    let tokens = try await withThrowingTaskGroup(of: String.self) { group in
      for index in 0..<20 { group.addTask { try await (index % 2 == 0 ? handle : process).connectionToken() } }
      return try await group.reduce(into: Set()) { $0.insert($1) }
    }
    #expect(tokens.count == 1 && receipts == 1 && connections == 1)
  }

  @Test("a receipt that is refused before its time is replaced, once") func refusedReceipt() async throws {
    try await signIn()
    _ = try await handle.connectionToken()
    setup.clock.advance(by: .seconds(890))
    setup.backend.fail("/connection_tokens", .status(401, [:]))
    _ = try await handle.connectionToken()
    #expect(receipts == 2 && connections == 3)
    setup.clock.advance(by: .seconds(890))
    setup.backend.fail("/connection_tokens", .status(401, [:]), .status(401, [:]))
    await #expect(throws: KapeAuthError.self) { try await handle.connectionToken() }
    #expect(receipts == 3 && connections == 5)
  }

  @Test("403, and no receipt that fits: no matching subscription") func notEntitled() async throws {
    try await signIn()
    setup.backend.change { $0.connectionRefusal = 403 }
    await #expect(throws: KapeSubscriptionError.noMatchingSubscription) { try await handle.connectionToken() }
    setup.backend.change { $0.receipts = [["xv.other"]] }
    setup.clock.advance(by: .seconds(4000))
    await #expect(throws: KapeSubscriptionError.noMatchingSubscription) { try await handle.connectionToken() }
  }

  @Test("429 with Retry-After is obeyed, by every process") func rateLimit() async throws {
    try await signIn()
    setup.backend.fail("/subscription_receipts", .status(429, ["retry-after": "100"]))
    let until = setup.clock.wallTime + 100
    let process = try setup.handle()
    for handle in [handle, process, handle] {
      await #expect(throws: KapeAuthError.rateLimited(until: until)) { try await handle.connectionToken() }
    }
    #expect(receipts == 1)
    setup.clock.advance(by: .seconds(99))
    await #expect(throws: KapeAuthError.rateLimited(until: until)) { try await process.connectionToken() }
    #expect(receipts == 1)
    setup.clock.advance(by: .seconds(1))
    _ = try await process.connectionToken()
    #expect(receipts == 2)
    setup.clock.advance(by: .seconds(900))
    setup.backend.fail("/connection_tokens", .status(429, [:]))
    let later = setup.clock.wallTime + 60
    await #expect(throws: KapeAuthError.rateLimited(until: later)) { try await handle.connectionToken() }
    #expect(connections == 2)
  }

  @Test("nobody signed in, nothing activated, no host: each by its own error") func preconditions() async throws {
    await #expect(throws: KapeAuthError.notSignedIn) { try await handle.connectionToken() }
    await #expect(throws: KapeAuthError.notSignedIn) { try await handle.activateSubscription(for: .vpn) }
    try await client.login(presenting: setup.browser())
    await #expect(throws: KapeSubscriptionError.notActivated) { try await handle.connectionToken() }
    let homeless = try setup.handle(nil) { $0.apiBaseURL = nil }
    await #expect(throws: KapeSDKSettingsError.missingKey("APIBaseURL")) {
      try await homeless.activateSubscription(for: .vpn)
    }
    let nobodys = try setup.handle(nil) { $0.tenantId = nil }
    await #expect(throws: KapeSDKSettingsError.missingKey("TenantId")) {
      try await nobodys.activateSubscription(for: .vpn)
    }
  }

  @Test("what was fetched for one account is not used for the next") func accountSwitch() async throws {
    try await signIn()
    let first = try await handle.connectionToken()
    try await client.login(presenting: setup.browser("other"))
    await #expect(throws: KapeSubscriptionError.notActivated) { try await handle.connectionToken() }
    try await handle.activateSubscription(for: .vpn)
    #expect(try await handle.connectionToken() != first)
    #expect(receipts == 2)
  }

  @Test("another product is another token; another activation asks anew") func products() async throws {
    try await signIn()
    let vpn = try await handle.connectionToken()
    setup.backend.change { $0.subscriptions[0].entitlements = ["xv.other", "xv.vpn"] }
    try await handle.activateSubscription(for: .custom(values: ["xv.other"]))
    #expect(try await handle.connectionToken() != vpn)
    #expect(receipts == 1 && connections == 2)
  }

  @Test(
    "answers that cannot be read are told so: receipts, tokens, quotes are taken off", arguments: ["", "{}", "[1]"])
  func unreadable(_ text: String) async throws {
    try await signIn()
    setup.backend.fail("/subscription_receipts", .body(text))
    await #expect(throws: KapeAuthError.self) { try await handle.connectionToken() }
    setup.backend.fail("/connection_tokens", .body("two words"))
    await #expect(throws: KapeAuthError.self) { try await handle.connectionToken() }
    let token = try setup.backend.sign(["kind": "connection"], for: 900)
    setup.backend.fail("/connection_tokens", .body("\"\(token)\"\n"))
    #expect(try await handle.connectionToken() == token)
  }
}
