import KapeControl
import Testing

@testable import KapeBackend

@Suite struct SettingsTests {
  private static func problems(_ text: String) -> [String] {
    do {
      _ = try BackendSettings(parsing: Array(text.utf8))
      return []
    } catch { return error.problems }
  }

  @Test func theDefaultsAreRight() throws {
    let settings = try BackendSettings(parsing: Array(BackendSettings.defaultText.utf8))
    #expect(settings.users.map(\.email).count == 5)
    let returning = try #require(settings.users.first { $0.email == "returning@example.com" })
    #expect(returning.subscriptions.first?.status == .expired, "expired ones first")
    #expect(settings.users.contains { $0.subscriptions.isEmpty })
    #expect(settings.users.contains { $0.subscriptions.count > 2 })
    #expect(settings.users.contains { $0.subscriptions.first?.tier == "free" })
    #expect(settings.tls == nil)
    #expect(isLoopback(settings.listen.address))
  }

  @Test(arguments: [
    ("{\"listn\": 1}", "listn: unknown; did you mean listen?"), ("[]", "settings: an object is wanted"),
    ("{\"listen\": \"0.0.0.0:1\"}", "takes tls"), ("{\"listen\": \"192.0.2.1:1\"}", "takes tls"),
    ("{\"listen\": \"[::]:1\", \"tls\": {\"names\": [\"x\"]}}", "issuer: is wanted"),
    ("{\"listen\": \"localhost:1\"}", "ADDRESS:PORT"), ("{\"issuer\": \"https://x/\"}", "issuer: "),
    ("{\"issuer\": \"ftp://x\"}", "issuer: "), ("{\"paths\": {\"token\": \"token\"}}", "paths.token: "),
    ("{\"paths\": {\"endpoints\": \"/e\"}}", "{location_id}"),
    ("{\"paths\": {\"tokens\": \"/t\"}}", "did you mean token?"),
    ("{\"lifetimes\": {\"code\": \"1 year\"}}", "lifetimes.code: a time, 5 s to 10 min"),
    ("{\"lifetimes\": {\"peer\": \"3 d\"}}", "lifetimes.holder"),
    ("{\"limits\": {\"token\": {\"requests\": 0, \"per\": 1}}}", "limits.token.requests"),
    ("{\"peers\": {\"at_cap\": \"drop\"}}", "replace or refuse"),
    ("{\"users\": [{\"email\": \"x\"}]}", "users[0].email"),
    ("{\"users\": [{\"email\": \"a@b\"}, {\"email\": \"A@B\"}]}", "two of them are the same"),
    (
      "{\"users\": [{\"email\": \"a@b\", \"subscriptions\": [{\"status\": \"x\"}]}]}",
      "users[0].subscriptions[0].status"
    ),
    ("{\"clients\": [{\"id\": \"a\", \"redirect_uris\": [\"/x\"]}]}", "clients[0].redirect_uris"),
    (
      "{\"locations\": [{\"id\": \"a\", \"name\": \"A\", \"country_code\": \"nl\", \"continent\": \"E\", \"latitude\": 91, \"longitude\": 0}]}",
      "locations[0].latitude"
    ),
    ("{\"servers\": [{\"name\": \"a\"}]}", "servers[0].socket: is missing"),
    ("{\"dedicated_ips\": [{\"ip\": \"x\", \"location\": \"a\", \"ends_in\": 1}]}", "dedicated_ips[0].ip"),
    ("{\"body_limit\": \"big\"}", "body_limit: a whole number"), ("{", "not JSON: "), ("", "not JSON: "),
    ("{\"a\": 1, \"a\": 2}", "twice"), ("{\"tls\": {\"certificate\": \"/c\"}}", "tls.key: is missing"),
  ])
  func whatIsWrongIsNamed(_ text: String, _ words: String) {
    let problems = Self.problems(text)
    #expect(problems.contains { $0.contains(words) }, "\(problems)")
  }

  @Test func everythingIsToldAtOnce() {
    #expect(Self.problems("{\"listen\": 1, \"issuer\": 2, \"tenant\": 3, \"x\": 4}").count == 4)
  }

  @Test func pathsAndTenantAreSettings() async throws {
    let test = try await TestBackend(
      "\"tenant\": \"brand\", \"paths\": {\"token\": \"/t\", \"keys\": \"/a b\"}, \"vpn_entitlement\": \"kape.vpn\"")
    #expect(await test.get("/oauth2/jwks").status == 404)
    #expect(await test.get("/a%20b").status == 200)
    #expect(await test.get("/.well-known/openid-configuration").json["token_endpoint"] == "http://127.0.0.1:8480/t")
    #expect(
      try claims(
        await test.form(
          "/t",
          ["grant_type": Backend.guestGrant, "client_id": "app", "guest_secret": String(repeating: "A", count: 43)]
        ).json["access_token"]?.string)["aud"] == "brand")
  }

  @Test func aRouteIsAPathAndAMethod() {
    let router = Router([.endpoints: "/l/{location_id}/e", .token: "/t", .locations: "/l"])
    #expect(router.match(method: "GET", path: "/l/a%2Fb/e") == .operation(.endpoints, ["location_id": "a/b"]))
    #expect(router.match(method: "POST", path: "/l/a/e") == .otherMethods(["GET"]))
    for path in ["/l//e", "/l/%zz/e", "/l/a/e/", "/t/", "", "/", "//t", "t"] {
      #expect(router.match(method: "GET", path: path) == .none, "\(path)")
    }
  }

  @Test func formsAreReadStrictly() {
    func read(_ text: String) -> FormData? { FormData(parsing: Array(text.utf8)) }
    #expect(
      read("a=b+c%2B&d&&e=")?.fields == [
        .init(name: "a", value: "b c+"), .init(name: "d", value: ""), .init(name: "e", value: ""),
      ])
    for wrong in ["a=%", "a=%4", "a=%zz", "%00=a", "a=%FF"] { #expect(read(wrong) == nil, "\(wrong)") }
    #expect(read("a=1&a=2")?["a"] == nil)
    #expect(read("a=1&a=2")?.repeatedName == "a")
    #expect(read("a=")?["a"] == nil)
    #expect(FormData.encoded("a b/ü~") == "a%20b%2F%C3%BC~")
  }
}
