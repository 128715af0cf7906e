import Foundation
import Testing

@testable import KapePlatform

@Suite("§3.3, §16: the publisher of subscriptions") struct SubscriptionFeedTests {
  private let setup: SDKSetup
  private let handle: KapeSdkHandle
  private let client: KapeAuthClient
  private let lists: PublisherRecord<[KapeSubscription]?>

  init() throws {
    setup = try SDKSetup()
    handle = try setup.handle()
    client = KapeAuthClient(handle: handle)
    lists = PublisherRecord(client.subscriptions)
  }

  private func subscription(_ id: String, end: TimeInterval? = nil) -> KapeSubscription {
    KapeSubscription(
      id: id, status: .active, source: "web", tier: "premium", currentTermEnd: end.map { setup.clock.wallTime + $0 },
      entitlements: ["xv.vpn"])
  }

  private func offer(_ subscriptions: KapeSubscription...) { setup.backend.change { $0.subscriptions = subscriptions } }
  private var fetches: Int { setup.backend.count("/subscriptions") }
  private func fetched(_ count: Int) async -> Bool {
    await eventually { fetches == count && setup.clock.timerCount == 1 }
  }

  @Test("nil until the first fetch of the session; expired ones are in it; [] when there are none") func first()
    async throws
  {
    #expect(lists.values == [nil])
    try await client.login(presenting: setup.browser())
    #expect(await eventually { lists.values.count == 2 })
    #expect(lists.values == [nil, []])
    var expired = subscription("old")
    expired.status = .expired
    offer(expired, subscription("new"))
    setup.clock.advance(by: .seconds(3600))
    #expect(await eventually { lists.last??.map(\.id) == ["old", "new"] })
    #expect(lists.last??.active?.id == "new")
  }

  @Test("fetched every hour, and not in between") func hourly() async throws {
    offer(subscription("s"))
    try await client.login(presenting: setup.browser())
    for hour in 1...3 {
      #expect(await fetched(hour))
      setup.clock.advance(by: .seconds(3599))
      await settle()
      #expect(fetches == hour)
      setup.clock.advance(by: .seconds(1))
    }
    #expect(await fetched(4))
  }

  @Test("fetched when a term ends") func termEnd() async throws {
    offer(subscription("a", end: 2000), subscription("b", end: 500), subscription("c", end: -5))
    try await client.login(presenting: setup.browser())
    #expect(await fetched(1))
    setup.clock.advance(by: .seconds(499))
    await settle()
    #expect(fetches == 1)
    var ended = subscription("b", end: -1)
    ended.status = .expired
    offer(subscription("a", end: 1500), ended)
    setup.clock.advance(by: .seconds(1))
    #expect(await fetched(2))
    #expect(await eventually { lists.last??.last?.status == .expired })
    setup.clock.advance(by: .seconds(1500))
    #expect(await fetched(3))
  }

  @Test("fetched after each renewal of the session, once") func renewal() async throws {
    offer(subscription("s"))
    try await client.login(presenting: setup.browser())
    #expect(await fetched(1))
    setup.clock.advance(by: .seconds(1000))
    await settle()
    #expect(fetches == 1)
    _ = try await handle.identityToken()
    #expect(await fetched(2))
    // The hourly fetch itself renews the session on its way, and is one.
    setup.clock.advance(by: .seconds(3600))
    #expect(await fetched(3))
    await settle()
    #expect(fetches == 3 && setup.backend.refreshCount() == 2)
  }

  @Test("a failed fetch keeps the last value, nil stays nil, and it is tried again sooner") func failure() async throws
  {
    setup.backend.fail("/subscriptions", .network, .status(500, [:]), .body("{}"))
    try await client.login(presenting: setup.browser())
    for (count, pause) in [(1, 60), (2, 120), (3, 240)] {
      #expect(await fetched(count))
      #expect(lists.values == [nil])
      offer(subscription("s"))
      setup.clock.advance(by: .seconds(pause))
    }
    #expect(await fetched(4))
    #expect(lists.values.map { $0?.map(\.id) } == [nil, ["s"]])
    setup.backend.fail("/subscriptions", .network)
    setup.clock.advance(by: .seconds(3600))
    #expect(await fetched(5))
    #expect(lists.last??.map(\.id) == ["s"])
  }

  @Test("429: not before the time that the answer names") func rateLimit() async throws {
    setup.backend.fail("/subscriptions", .status(429, ["retry-after": "1000"]))
    try await client.login(presenting: setup.browser())
    #expect(await fetched(1))
    setup.clock.advance(by: .seconds(999))
    await settle()
    #expect(fetches == 1)
    setup.clock.advance(by: .seconds(1))
    #expect(await fetched(2))
  }

  @Test("nil again at once on an account switch; what comes late for the one before is nobody's") func accountSwitch()
    async throws
  {
    offer(subscription("alices"))
    try await client.login(presenting: setup.browser("alice"))
    #expect(await fetched(1))
    let (released, release) = AsyncStream.makeStream(of: Void.self)
    setup.backend.change { state in
      state.gate = { request in
        guard request.url.path.hasSuffix("/subscriptions") else { return }
        for await _ in released {}
      }
    }
    setup.clock.advance(by: .seconds(3600))
    #expect(await eventually { fetches == 2 })
    try await client.login(presenting: setup.browser("bob"))
    #expect(lists.values.last == .some(nil))
    release.finish()
    setup.backend.change { $0.gate = nil }
    #expect(await fetched(3))
    #expect(lists.values.map { $0?.map(\.id) } == [nil, ["alices"], nil, ["alices"]])
  }

  @Test("nil again at sign-out, and nothing is fetched any more; then a guest has []") func signOut() async throws {
    offer(subscription("s"))
    try await client.login(presenting: setup.browser())
    #expect(await fetched(1))
    try await client.logout()
    #expect(lists.values.last == .some(nil))
    setup.clock.advance(by: .seconds(8000))
    await settle()
    #expect(fetches == 1 && setup.clock.timerCount == 0)
    try await client.loginAsGuest()
    #expect(lists.values.last == .some([]))
  }

  @Test("a handle without a client of this kind, as in the tunnel, fetches nothing of its own accord") func tunnel()
    async throws
  {
    try await client.login(presenting: setup.browser())
    #expect(await fetched(1))
    let tunnel = try setup.handle()
    setup.clock.advance(by: .seconds(1000))
    _ = try await tunnel.identityToken()
    await settle()
    #expect(fetches == 1)
  }

  @Test("what another process does is seen: sign-in, sign-out") func otherProcess() async throws {
    let states = PublisherRecord(client.authState)
    offer(subscription("s"))
    let process = KapeAuthClient(handle: try setup.handle())
    try await process.login(presenting: setup.browser())
    #expect(await eventually { states.last == .authenticated && lists.last??.map(\.id) == ["s"] })
    try await process.logout()
    #expect(await eventually { states.last == .unauthenticated && lists.last == .some(nil) })
    #expect(states.values == [.unauthenticated, .authenticated, .unauthenticated])
  }
}
