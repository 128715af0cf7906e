import KapeCrypto
import Testing

@testable import KapeBackend

private let day: Int64 = 86_400

@Suite struct KeyRotationTests {
  private static func published(_ test: TestBackend) async -> Set<String> {
    Set((await test.get("/oauth2/jwks").json["keys"]?.array ?? []).compactMap { $0["kid"]?.string })
  }

  @Test func keysRotateWithAnOverlap() async throws {
    let test = try await TestBackend("\"lifetimes\": {\"connection_token\": \"20 d\", \"holder\": \"20 d\"}")
    let old = try await test.connection()
    let first = await Self.published(test)
    #expect(first.count == 2, "one for each algorithm")
    #expect(first.contains(try kid(old)))

    await test.advance(29 * day - 1)
    #expect(await Self.published(test) == first)
    await test.advance(1)
    let both = await Self.published(test)
    #expect(both.count == 4, "the next ones are published a day ahead")
    #expect(first.contains(try kid(try await test.connection())))
    await test.advance(day - 1)
    let last = try await test.connection()
    #expect(first.contains(try kid(last)))
    await test.advance(1)
    #expect(!first.contains(try kid(try await test.connection())), "the new one signs")

    #expect(await test.get("/vpn/v1/locations/x/endpoints", token: last).status == 404, "good during the overlap")
    await test.advance(day - 1)
    #expect(await test.get("/vpn/v1/locations/x/endpoints", token: last).status == 404)
    await test.advance(1)
    let refused = await test.get("/vpn/v1/locations/x/endpoints", token: last)
    #expect(refused.status == 401)
    #expect(refused.json["code"] == "invalid_token", "not expired: its key is")
    #expect(await Self.published(test).isDisjoint(with: first))
  }

  @Test func aRestartFindsTheKeys() async throws {
    let test = try await TestBackend()
    let token = try await test.connection()
    let second = try await TestBackend(in: test.state.path)
    #expect(await Self.published(test) == Self.published(second))
    #expect(await second.get("/vpn/v1/locations/x/endpoints", token: token).status == 404)
    #expect(second.made.isEmpty, "nothing is made anew")
  }

  @Test func keysAreTakenUpAfterALongSleep() async throws {
    let test = try await TestBackend()
    let first = await Self.published(test)
    await test.advance(100 * day)
    #expect(first.contains(try kid(try await test.connection())) == false)
  }

  @Test func aTokenPassesForNoOther() async throws {
    let test = try await TestBackend("\"locations\": [], \"limits\": {}")
    let tokens = try await test.signIn()
    let identity = try #require(tokens["access_token"]?.string)
    let idToken = try #require(tokens["id_token"]?.string)
    let receipt = try #require(await test.receipts(identity).json.strings?.first)
    let connection = await test.connectionToken(receipt).text
    for token in [idToken, receipt, connection] {
      #expect(await test.get("/srs2/subscriptions", token: token).status == 401)
      #expect(await test.receipts(token).status == 401)
    }
    for token in [identity, idToken, connection] { #expect(await test.connectionToken(token).status == 401) }
    for token in [identity, idToken, receipt] {
      #expect(await test.get("/vpn/v1/locations/x/endpoints", token: token).status == 401)
    }
  }

  @Test func tokensThatWereTamperedWith() async throws {
    let test = try await TestBackend()
    let token = try await test.connection()
    let parts = token.split(separator: ".").map(String.init)
    let none = Base64URL.encode(Array("{\"alg\":\"none\",\"typ\":\"connection+jwt\"}".utf8))
    let claims = try KapeBackendTests.claims(token).text.replacing("kape.vpn", with: "kape.vpm")
    for forged in [
      "\(none).\(parts[1]).", "\(none).\(parts[1]).\(parts[2])",
      "\(parts[0]).\(Base64URL.encode(Array(claims.utf8))).\(parts[2])",
      "\(parts[0]).\(parts[1]).", "\(parts[0]).\(parts[1])", token + "A", token + "=", "", "a b", "' OR 1=1",
      String(repeating: "A", count: 10_000),
    ] {
      #expect(await test.get("/vpn/v1/locations/x/endpoints", token: forged).status == 401, "\(forged.prefix(40))")
    }
    #expect(await test.get("/vpn/v1/locations/x/endpoints", ["authorization": token]).status == 404, "bare is fine")
    #expect(await test.get("/vpn/v1/locations/x/endpoints").header("WWW-Authenticate") == "Bearer")
  }
}
