import KapeCrypto
import Testing

@testable import KapeBackend

@Suite struct SignInTests {
  @Test func aCodeGivesTokensOnce() async throws {
    let test = try await TestBackend()
    let answer = await test.sendForm(try await test.openForm())
    #expect(answer.status == 303)
    #expect(answer.header("Location")?.hasPrefix(TestBackend.redirectURI + "?") == true)
    #expect(answer.redirected["state"] == "s t&=a")
    #expect(answer.redirected["iss"] == "http://127.0.0.1:8480")
    let code = try #require(answer.redirected["code"])
    let tokens = await test.redeem(code)
    #expect(tokens.status == 200)
    #expect(tokens.header("Cache-Control") == "no-store")
    let idToken = try claims(tokens.json["id_token"]?.string)
    #expect(idToken["email"] == "paying@example.com")
    #expect(idToken["name"] == "Paying")
    #expect(idToken["nonce"] == "n")
    #expect(idToken["aud"] == "app")
    #expect(idToken["auth_time"] == .integer(TestBackend.start))
    let access = try #require(tokens.json["access_token"]?.string)
    #expect(idToken["at_hash"]?.string == Base64URL.encode(Array(SHA256.hash(Array(access.utf8))[..<16])))
    #expect(await test.get("/srs2/subscriptions", token: access).status == 200)

    let again = await test.redeem(code)
    #expect(again.status == 400)
    #expect(again.json["error"] == "invalid_grant")
    #expect(await test.get("/srs2/subscriptions", token: access).status == 401, "what came of the code is revoked")
    #expect(await test.refresh(tokens.json["refresh_token"]?.string).status == 400)
  }

  @Test func aCodeExpires() async throws {
    let test = try await TestBackend()
    let code = try await test.code()
    await test.advance(59)
    let late = try await test.code()
    await test.advance(1)
    #expect(await test.redeem(code).json["error"] == "invalid_grant")
    #expect(await test.redeem(late).status == 200)
  }

  @Test(arguments: [
    ["code_verifier": String(repeating: "w", count: 64)], ["redirect_uri": "http://127.0.0.1:50124/callback"],
    ["client_id": "other"],
  ])
  func aCodeIsOfNoUseWithAnother(_ change: [String: String]) async throws {
    let test = try await TestBackend()
    let code = try await test.code()
    #expect(await test.redeem(code, change).json["error"] == "invalid_grant")
    #expect(await test.redeem(code).json["error"] == "invalid_grant", "nobody gets a second guess")
  }

  @Test func malformedRequestsForTokens() async throws {
    let test = try await TestBackend()
    for change in [["code_verifier": "short"], ["code": ""], ["grant_type": ""]] {
      #expect(await test.redeem("code", change).json["error"] == "invalid_request")
    }
    #expect(await test.redeem("code", ["grant_type": "password"]).json["error"] == "unsupported_grant_type")
    #expect(await test.redeem("code", ["client_id": "nobody"]).status == 401)
    #expect(await test.redeem("' OR 1=1 --").json["error"] == "invalid_grant")
    let twice = await test.post(
      "/oauth2/token", type: "application/x-www-form-urlencoded", body: "client_id=app&client_id=app")
    #expect(twice.json["error"] == "invalid_request")
    let broken = await test.post("/oauth2/token", type: "application/x-www-form-urlencoded", body: "a=%zz")
    #expect(broken.json["error"] == "invalid_request")
    #expect(await test.post("/oauth2/token", type: "application/json", body: "{}").status == 415)
  }

  private static let own = [
    "http://127.0.0.1/callback", "http://127.0.0.1:1/callback", "http://127.0.0.1:65535/callback",
    "app.example:/callback",
  ]

  @Test func redirectURIsThatAreTheApps() async throws {
    let test = try await TestBackend()
    for uri in Self.own { #expect(await test.authorize(["redirect_uri": uri]).status == 200, "\(uri)") }
  }

  private static let foreign = [
    "http://127.0.0.1:65536/callback", "http://127.0.0.1:/callback", "http://127.0.0.1:x/callback",
    "http://127.0.0.1:1/other",
    "http://127.0.0.1:1/callback?x", "http://127.0.0.1:1/callback#f", "http://127.0.0.1.example.com/callback",
    "http://127.0.0.1:1@example.com/callback", "http://localhost:1/callback", "https://127.0.0.1:1/callback",
    "http://[::1]:1/callback", "app.example:/callback2", "https://other.example.com/callback", "javascript:alert(1)",
    "",
  ]

  @Test func redirectURIsThatAreNot() async throws {
    let test = try await TestBackend()
    for uri in Self.foreign {
      let answer = await test.authorize(["redirect_uri": uri])
      #expect(answer.status == 400, "\(uri)")
      #expect(answer.header("Location") == nil)
    }
  }

  private static let faults: [([String: String?], String)] = [
    (["response_type": "token"], "unsupported_response_type"), (["response_type": nil], "invalid_request"),
    (["code_challenge": nil], "invalid_request"), (["code_challenge_method": "plain"], "invalid_request"),
    (["code_challenge_method": nil], "invalid_request"), (["code_challenge": "short"], "invalid_request"),
    (["scope": "email"], "invalid_scope"), (["prompt": "none"], "login_required"),
    (["request": "x"], "request_not_supported"), (["response_mode": "fragment"], "invalid_request"),
    (["nonce": String(repeating: "n", count: 257)], "invalid_request"),
  ]

  @Test func whatTheAppIsToldOf() async throws {
    let test = try await TestBackend()
    for (change, error) in Self.faults {
      let answer = await test.authorize(change)
      #expect(answer.status == 303)
      #expect(answer.redirected["error"] == error)
      #expect(answer.redirected["state"] == "s t&=a")
      #expect(answer.redirected["iss"] != nil)
      #expect(answer.redirected["code"] == nil)
    }
  }

  @Test func theFormIsGoodInItsBrowserForAWhile() async throws {
    let test = try await TestBackend()
    var form = try await test.openForm()
    let cookie = form.cookie
    form.cookie = "kape_sign_in=" + Base64URL.encode(SecretMemory.randomBytes(32))
    #expect(await test.sendForm(form).status == 400)
    form.cookie = ""
    #expect(await test.sendForm(form).status == 400)
    form.cookie = "other=1; " + cookie
    #expect(await test.sendForm(form, password: "wrong").status == 403)
    var forged = form
    forged.sealed = "x" + form.sealed
    #expect(await test.sendForm(forged).status == 400)
    await test.advance(599)
    #expect(await test.sendForm(form).status == 303)
    await test.advance(1)
    #expect(await test.sendForm(form).status == 400)
  }

  @Test func theUserMayCancel() async throws {
    let test = try await TestBackend()
    let answer = await test.sendForm(try await test.openForm(), ["action": "deny", "password": "", "username": ""])
    #expect(answer.redirected["error"] == "access_denied")
    #expect(answer.redirected["state"] == "s t&=a")
  }

  @Test func wrongPasswordsAreCounted() async throws {
    let test = try await TestBackend("\"limits\": {\"passwords\": {\"requests\": 2, \"per\": \"100 s\"}}")
    let form = try await test.openForm()
    for _ in 0..<3 { #expect(await test.sendForm(form).status == 303, "right ones are not") }
    #expect(await test.sendForm(form, ["username": "nobody@example.com"]).status == 403)
    #expect(await test.sendForm(form, password: "").status == 403)
    #expect(await test.sendForm(form, password: "wrong").status == 403)
    let refused = await test.sendForm(form)
    #expect(refused.status == 429)
    #expect(refused.header("Retry-After") == "50")
    await test.advance(49)
    #expect(await test.sendForm(form).status == 429)
    await test.advance(1)
    #expect(await test.sendForm(form, ["username": "PAYING@example.com"]).status == 303)
  }

  @Test func whatAUserTypesIsNoMarkup() async throws {
    let test = try await TestBackend()
    let answer = await test.sendForm(try await test.openForm(), ["username": "\"><script>alert(1)</script>"])
    #expect(answer.status == 403)
    #expect(!answer.text.contains("<script>"))
    #expect(answer.text.contains("&lt;script&gt;"))
    #expect(answer.header("Content-Security-Policy")?.contains("default-src 'none'") == true)
  }
}
