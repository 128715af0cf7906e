import KapeCrypto
import Testing

@testable import KapeBackend

private let day: Int64 = 86_400

@Suite struct SubscriptionTests {
  private static func statuses(_ test: TestBackend, _ identity: String) async -> [String] {
    (await test.get("/srs2/subscriptions", token: identity).json["subscriptions"]?.array ?? []).compactMap {
      $0["status"]?.string
    }
  }

  @Test func timeEndsASubscription() async throws {
    let test = try await TestBackend(
      "\"lifetimes\": {\"refresh_token\": \"900 d\", \"connection_token\": \"20 d\", \"holder\": \"20 d\"}")
    let refresh = try await test.signIn()["refresh_token"]?.string
    await test.advance(400 * day - 1800)
    let tokens = await test.refresh(refresh).json
    let identity = try #require(tokens["access_token"]?.string)
    #expect(await Self.statuses(test, identity) == ["expired", "active", "active"])
    let receipts = try #require(await test.receipts(identity).json.strings)
    #expect(receipts.count == 2)
    #expect(try claims(receipts[0])["exp"] == .integer(TestBackend.start + 400 * day), "not beyond the term")
    #expect(try claims(receipts[1])["exp"] == .integer(TestBackend.start + 400 * day - 1800 + 3600))
    let connection = await test.connectionToken(receipts[0]).text
    #expect(try claims(connection)["exp"] == .integer(TestBackend.start + 400 * day))

    await test.advance(1800)
    let later = try #require(await test.refresh(tokens["refresh_token"]?.string).json["access_token"]?.string)
    #expect(await Self.statuses(test, later) == ["expired", "expired", "active"])
    #expect(await test.receipts(later).json.strings?.count == 1)
    #expect(await test.connectionToken(receipts[0]).json["code"] == "expired_token")
    #expect(await test.connectionToken(receipts[1]).json["code"] == "not_entitled")
  }

  @Test func aReceiptOfASubscriptionThatEndedMeanwhile() async throws {
    let test = try await TestBackend()
    let identity = try #require(try await test.signIn()["access_token"]?.string)
    let receipt = try #require(await test.receipts(identity).json.strings?.first)
    try await test.backend.execute("UPDATE subscriptions SET status = 'suspended'")
    let refused = await test.connectionToken(receipt)
    #expect(refused.status == 403)
    #expect(refused.json["code"] == "subscription_ended")
  }

  @Test(
    arguments: [
      (SubscriptionStatus.active, nil, true), (.active, 1, true), (.active, 0, false), (.cancelled, 1, true),
      (.cancelled, 0, false), (.cancelled, nil, false), (.gracePeriod, -100, true), (.suspended, 1, false),
      (.expired, 1, false),
    ] as [(SubscriptionStatus, Int64?, Bool)])
  func whatGrantsAccess(_ status: SubscriptionStatus, _ left: Int64?, _ isGranted: Bool) {
    let subscription = Subscription(
      id: "", recorded: status, source: "", tier: "", currentTermEnd: left.map { 1000 + $0 }, nextBillingAt: nil,
      cancelledAt: nil, billing: nil, lastAutoBillPaymentFailed: false, isBusiness: false, entitlements: [])
    #expect(subscription.grantsAccess(at: 1000) == isGranted)
  }

  @Test func aConnectionTokenIsAnonymous() async throws {
    let test = try await TestBackend()
    let first = try claims(try await test.connection())
    let second = try claims(try await test.connection())
    #expect(first["sub"] == nil)
    #expect(first["jti"] != second["jti"])
    #expect(first["holder"] == second["holder"])
    let holders = try #require(first["holder"]?.strings)
    await test.advance(2 * day)
    let third = try #require(try claims(try await test.connection())["holder"]?.strings)
    #expect(third[1] == holders[0], "the pseudonym before")
    #expect(!holders.contains(third[0]))
    await test.advance(4 * day)
    let fourth = try #require(try claims(try await test.connection())["holder"]?.strings)
    #expect(Set(fourth).isDisjoint(with: third), "nothing connects it any more")
  }

  @Test func guestsAreWhoeverKnowsTheirSecret() async throws {
    let test = try await TestBackend("\"guests\": {\"tier\": \"visitor\", \"entitlements\": [\"kape.vpn\", \"x\"]}")
    let secret = Base64URL.encode(Array(0..<32))
    let first = await test.guest(secret).json
    let second = await test.guest(secret).json
    let user = try claims(first["access_token"]?.string)["sub"]
    let again = try claims(second["access_token"]?.string)["sub"]
    #expect(user == again)
    #expect(user?.string == "guest-" + Base64URL.encode(SHA256.hash(Array(0..<32))).prefix(22))
    let other = try claims(await test.guest().json["access_token"]?.string)["sub"]
    #expect(user != other)
    #expect(first["refresh_token"] == nil)
    let receipt = try claims(await test.receipts(first["access_token"]?.string ?? "").json.strings?.first)
    #expect(receipt["tier"] == "visitor")
    #expect(receipt["entitlements"] == ["kape.vpn", "x"])
    #expect(receipt["subscription_id"] == nil)
    for wrong in ["short", secret + "A", "", secret.replacing("A", with: "=")] {
      #expect(await test.guest(wrong).json["error"] == "invalid_request")
    }
  }

  @Test func guestsMayBeUnwanted() async throws {
    let test = try await TestBackend()
    let token = await test.guest().json["access_token"]?.string ?? ""
    let second = try await TestBackend("\"guests\": {\"allowed\": false}", in: test.state.path)
    #expect(await second.guest().json["error"] == "unsupported_grant_type")
    #expect(await second.receipts(token).status == 401)
    #expect(
      await second.get("/.well-known/openid-configuration").json["grant_types_supported"] == [
        "authorization_code", "refresh_token",
      ])
  }

  @Test func newGuestsAreLimited() async throws {
    let test = try await TestBackend("\"limits\": {\"guests\": {\"requests\": 2, \"per\": \"60 s\"}}")
    #expect(await test.guest().status == 200)
    #expect(await test.guest().status == 200)
    let refused = await test.guest()
    #expect(refused.status == 429)
    #expect(refused.json["error"] == "slow_down")
    #expect(refused.header("Retry-After") == "30")
    await test.advance(30)
    #expect(await test.guest().status == 200)
  }
}
