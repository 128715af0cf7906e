import Foundation
import Testing

@testable import KapePlatform

@Suite("§3.3: activation by entitlement") struct ActivationTests {
  private let setup: SDKSetup
  private let handle: KapeSdkHandle
  private let client: KapeAuthClient

  init() throws {
    setup = try SDKSetup()
    handle = try setup.handle()
    client = KapeAuthClient(handle: handle)
  }

  private func subscription(
    _ id: String, _ entitlements: [String], _ status: KapeSubscription.Status = .active
  ) -> KapeSubscription {
    KapeSubscription(id: id, status: status, source: "web", tier: "premium", entitlements: entitlements)
  }

  private func offer(_ subscriptions: KapeSubscription...) { setup.backend.change { $0.subscriptions = subscriptions } }

  @Test(".vpn is the tenant's entitlement; of several the first that grants access is taken, expired ones are not")
  func vpn() async throws {
    offer(
      subscription("expired", ["xv.vpn"], .expired), subscription("other", ["xv.vpn2", "yv.vpn", "vpn"]),
      subscription("first", ["xv.dip", "xv.vpn"]), subscription("second", ["xv.vpn"]))
    try await client.login(presenting: setup.browser())
    #expect(handle.activeSubscription == nil)
    try await handle.activateSubscription(for: .vpn)
    #expect(handle.activeSubscription?.id == "first")
    #expect(try setup.handle().activeSubscription?.id == "first", "the tunnel's process sees it")
  }

  @Test(".custom matches with any of its values") func custom() async throws {
    offer(subscription("a", ["one"]), subscription("b", ["two", "three"]))
    try await client.login(presenting: setup.browser())
    try await handle.activateSubscription(for: .custom(values: ["three", "four"]))
    #expect(handle.activeSubscription?.id == "b")
    for values in [[], ["five"], ["on", "ONE"]] {
      await #expect(throws: KapeSubscriptionError.noMatchingSubscription) {
        try await handle.activateSubscription(for: .custom(values: values))
      }
    }
    #expect(handle.activeSubscription?.id == "b", "a failed one changes nothing")
  }

  @Test("no match: noMatchingSubscription, with words that help") func none() async throws {
    offer(subscription("expired", ["xv.vpn"], .expired), subscription("suspended", ["xv.vpn"], .suspended))
    try await client.login(presenting: setup.browser())
    let error = await #expect(throws: KapeSubscriptionError.noMatchingSubscription) {
      try await handle.activateSubscription(for: .vpn)
    }
    #expect(error?.localizedDescription.contains("TenantId") == true)
  }

  @Test("the choice is kept with the session, kept up to date by what is fetched, and gone with it") func lifetime()
    async throws
  {
    offer(subscription("s", ["xv.vpn"]))
    try await client.login(presenting: setup.browser())
    #expect(await eventually { setup.backend.count("/subscriptions") == 1 && setup.clock.timerCount == 1 })
    try await handle.activateSubscription(for: .vpn)
    setup.clock.advance(by: .seconds(1000))
    _ = try await handle.identityToken()
    #expect(handle.activeSubscription?.id == "s", "a renewal keeps it")
    offer(subscription("s", ["xv.vpn"], .gracePeriod))
    setup.clock.advance(by: .seconds(3600))
    #expect(await eventually { handle.activeSubscription?.status == .gracePeriod })
    offer(subscription("t", ["xv.vpn"]))
    setup.clock.advance(by: .seconds(3600))
    #expect(await eventually { handle.activeSubscription == nil })
    try await handle.activateSubscription(for: .vpn)
    #expect(handle.activeSubscription?.id == "t")
    try await client.logout()
    #expect(handle.activeSubscription == nil)
  }

  @Test("activating resolves the publisher too") func publisher() async throws {
    let lists = PublisherRecord(client.subscriptions)
    setup.backend.fail("/subscriptions", .network)
    offer(subscription("s", ["xv.vpn"]))
    try await client.login(presenting: setup.browser())
    #expect(await eventually { setup.backend.count("/subscriptions") == 1 })
    try await handle.activateSubscription(for: .vpn)
    #expect(await eventually { lists.last??.map(\.id) == ["s"] })
  }
}
