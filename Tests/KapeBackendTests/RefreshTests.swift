import Testing

@testable import KapeBackend

@Suite struct RefreshTests {
  private static func works(_ access: JSON?, _ test: TestBackend) async -> Bool {
    await test.get("/srs2/subscriptions", token: access?.string ?? "").status == 200
  }

  @Test func eachTokenGivesTheNext() async throws {
    let test = try await TestBackend()
    var tokens = try await test.signIn()
    for _ in 0..<3 {
      await test.advance(900)
      #expect(await !Self.works(tokens["access_token"], test), "an identity token lives a quarter of an hour")
      let answer = await test.refresh(tokens["refresh_token"]?.string)
      #expect(answer.status == 200)
      #expect(answer.json["refresh_token"] != tokens["refresh_token"])
      #expect(await Self.works(answer.json["access_token"], test))
      #expect(try claims(answer.json["id_token"]?.string)["nonce"] == nil)
      #expect(try claims(answer.json["id_token"]?.string)["auth_time"] == .integer(TestBackend.start))
      tokens = answer.json
    }
  }

  @Test func aTokenUsedAgainEndsItsFamily() async throws {
    let test = try await TestBackend()
    let first = try await test.signIn()
    let bystander = try await test.signIn()
    let second = await test.refresh(first["refresh_token"]?.string).json
    let third = await test.refresh(second["refresh_token"]?.string).json
    #expect(await Self.works(third["access_token"], test))
    #expect(await test.refresh(first["refresh_token"]?.string).json["error"] == "invalid_grant")
    for tokens in [first, second, third] {
      #expect(await !Self.works(tokens["access_token"], test))
      #expect(await test.refresh(tokens["refresh_token"]?.string).json["error"] == "invalid_grant")
    }
    #expect(await Self.works(bystander["access_token"], test), "another sign-in of the same user is not touched")
    #expect(await test.refresh(bystander["refresh_token"]?.string).status == 200)
  }

  @Test func aLostAnswerIsNotATheft() async throws {
    let test = try await TestBackend()
    let first = try await test.signIn()
    let lost = await test.refresh(first["refresh_token"]?.string).json
    await test.advance(29)
    let second = await test.refresh(first["refresh_token"]?.string)
    #expect(second.status == 200)
    #expect(await test.refresh(second.json["refresh_token"]?.string).status == 200)
    #expect(await test.refresh(lost["refresh_token"]?.string).json["error"] == "invalid_grant")
    #expect(await !Self.works(second.json["access_token"], test), "who used the lost answer was not the app")
  }

  @Test func theTimeForThatIsShort() async throws {
    let test = try await TestBackend()
    let first = try await test.signIn()
    let second = await test.refresh(first["refresh_token"]?.string).json
    await test.advance(30)
    #expect(await test.refresh(first["refresh_token"]?.string).json["error"] == "invalid_grant")
    #expect(await test.refresh(second["refresh_token"]?.string).json["error"] == "invalid_grant")
  }

  @Test func aTokenExpiresAndTimeGoesOnWithEachRefresh() async throws {
    let test = try await TestBackend("\"lifetimes\": {\"refresh_token\": \"1 d\"}")
    let first = try await test.signIn()
    await test.advance(86_399)
    let second = await test.refresh(first["refresh_token"]?.string)
    #expect(second.status == 200)
    await test.advance(86_399)
    #expect(await test.refresh(second.json["refresh_token"]?.string).status == 200)
    let third = try await test.signIn()
    await test.advance(86_400)
    #expect(await test.refresh(third["refresh_token"]?.string).json["error"] == "invalid_grant")
  }

  @Test func itIsTheAppsOwn() async throws {
    let test = try await TestBackend()
    let token = try await test.signIn()["refresh_token"]?.string
    #expect(await test.refresh(token, ["client_id": "other"]).json["error"] == "invalid_grant")
    #expect(await test.refresh(token, ["scope": "openid offline_access"]).json["error"] == "invalid_scope")
    let narrower = await test.refresh(token, ["scope": "openid"])
    #expect(narrower.status == 200)
    #expect(narrower.json["scope"] == "openid")
    #expect(try claims(narrower.json["id_token"]?.string)["email"] == nil)
    #expect(await test.refresh("unknown").json["error"] == "invalid_grant")
    #expect(await test.refresh(nil).json["error"] == "invalid_request")
  }

  @Test func signingOutEndsEverything() async throws {
    let test = try await TestBackend()
    let tokens = try await test.signIn()
    let token = tokens["refresh_token"]?.string ?? ""
    #expect(await test.form("/oauth2/revoke", ["client_id": "other", "token": token]).status == 200)
    #expect(await Self.works(tokens["access_token"], test), "another app cannot")
    #expect(await test.form("/oauth2/revoke", ["client_id": "app", "token": token]).status == 200)
    #expect(await !Self.works(tokens["access_token"], test))
    #expect(await test.refresh(token).json["error"] == "invalid_grant")
    #expect(await test.form("/oauth2/revoke", ["client_id": "app"]).status == 400)
  }
}
