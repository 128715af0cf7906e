import Foundation
import Testing

@testable import KapePlatform

@Suite("§3.5, §4: renewing a session") struct SessionRenewalTests {
  private let setup: SDKSetup
  private let handle: KapeSdkHandle
  private let client: KapeAuthClient

  init() throws {
    setup = try SDKSetup()
    handle = try setup.handle()
    client = KapeAuthClient(handle: handle)
  }

  /// And waits for what a sign-in brings about.
  private func signIn() async throws {
    try await client.login(presenting: setup.browser())
    try #require(await eventually { setup.backend.count("/subscriptions") == 1 && setup.clock.timerCount == 1 })
  }

  private func stored() throws -> StoredSession {
    let data = try Data(contentsOf: URL(fileURLWithPath: setup.sessionFolder + "/session"))
    return try JSONDecoder().decode(StoredSession.self, from: data)
  }

  @Test("an identity token is kept until it expires, and not used for its last 15 s") func kept() async throws {
    try await signIn()
    let first = try await handle.identityToken()
    setup.clock.advance(by: .seconds(884))
    #expect(try await handle.identityToken() == first)
    #expect(setup.backend.refreshCount() == 0)
    setup.clock.advance(by: .seconds(1))
    let second = try await handle.identityToken()
    #expect(second != first && setup.backend.refreshCount() == 1)
    #expect(try stored().refreshToken == "r2")
  }

  @Test("many tasks, two handles: one renewal") func coalesced() async throws {
    try await signIn()
    setup.clock.advance(by: .seconds(1000))
    let other = try setup.handle()
    let tokens = try await withThrowingTaskGroup(of: String.self) { group in
      for index in 0..<40 { group.addTask { try await (index % 2 == 0 ? handle : other).identityToken() } }
      return try await group.reduce(into: Set()) { $0.insert($1) }
    }
    #expect(tokens.count == 1 && setup.backend.refreshCount() == 1)
  }

  @Test("currentAuthenticationSession renews; a session that the issuer has ended is gone, with its state") func ended()
    async throws
  {
    let states = PublisherRecord(client.authState)
    try await signIn()
    setup.clock.advance(by: .seconds(1000))
    #expect(await client.currentAuthenticationSession()?.userId == "u1")
    #expect(setup.backend.refreshCount() == 1)
    setup.clock.advance(by: .seconds(1000))
    setup.backend.change { state in for index in state.families.indices { state.families[index].isRevoked = true } }
    #expect(await client.currentAuthenticationSession() == nil)
    #expect(client.lastKnownAuthenticationSession() == nil)
    #expect(states.values == [.unauthenticated, .authenticated, .unauthenticated])
    await #expect(throws: KapeAuthError.notSignedIn) { try await handle.identityToken() }
  }

  @Test("offline: nobody is signed out; last known is there, current is nil once the token has expired") func offline()
    async throws
  {
    try await signIn()
    setup.backend.fail("/token", .network, .status(500, [:]))
    #expect(await client.currentAuthenticationSession() != nil)
    setup.clock.advance(by: .seconds(1000))
    #expect(await client.currentAuthenticationSession() == nil)
    #expect(client.lastKnownAuthenticationSession()?.userId == "u1")
    await #expect(throws: KapeAuthError.unavailable(status: 500)) { try await handle.identityToken() }
    #expect(await client.currentAuthenticationSession() != nil)
  }

  @Test("the answer of a renewal is stored also when nobody waits for it any more") func cancelled() async throws {
    try await signIn()
    setup.clock.advance(by: .seconds(1000))
    let (arrived, arrive) = AsyncStream.makeStream(of: Void.self)
    let (released, release) = AsyncStream.makeStream(of: Void.self)
    setup.backend.change { state in
      state.gate = { request in
        guard request.url.path == "/token" else { return }
        arrive.finish()
        for await _ in released {}
      }
    }
    let task = Task { [handle] in try await handle.identityToken() }
    for await _ in arrived {}
    task.cancel()
    release.finish()
    #expect(await eventually { (try? stored().refreshToken) == "r2" })
    #expect(try stored().refreshAttempt == nil)
  }

  @Test("a renewal whose answer was lost, or not stored, is repeated as the same attempt, and not taken for a theft")
  func repetition() async throws {
    try await signIn()
    setup.clock.advance(by: .seconds(1000))
    // The answer comes, and is not stored: the folder cannot be written after the request has left.
    let folder = setup.sessionFolder
    let failing = try setup.handle { $0.setStorage(ForgetfulStorage(folder: folder)) }
    await #expect(throws: ForgetfulStorage.Failure.self) { try await failing.identityToken() }
    let attempt = try #require(try stored().refreshAttempt)
    #expect(try stored().refreshToken == "r1")
    _ = try await handle.identityToken()
    #expect(try stored().refreshToken == "r3" && stored().refreshAttempt == nil)
    let attempts = setup.backend.state.withLock { $0.requests.compactMap { $0.fields["idempotency-key"] } }
    #expect(attempts == ["\"\(attempt)\"", "\"\(attempt)\""])
    // And the family lives on.
    setup.clock.advance(by: .seconds(1000))
    _ = try await handle.identityToken()
    #expect(setup.backend.state.withLock { $0.families.allSatisfy { !$0.isRevoked } })
  }

  @Test("a renewal under another attempt is a theft to the issuer: the test's backend does watch for it") func theft()
    async throws
  {
    try await signIn()
    let stolen = try stored()
    setup.clock.advance(by: .seconds(1000))
    _ = try await handle.identityToken()
    let thief = try SDKSetup()
    let data = try JSONEncoder().encode(stolen)
    try FileManager.default.createDirectory(atPath: thief.sessionFolder, withIntermediateDirectories: true)
    try data.write(to: URL(fileURLWithPath: thief.sessionFolder + "/session"))
    let other = try KapeSdkHandle(
      setup.settings, nil, nil,
      SdkEnvironment(transport: setup.backend, clock: setup.clock, container: thief.container))
    await #expect(throws: KapeAuthError.sessionEnded) { try await other.identityToken() }
    setup.clock.advance(by: .seconds(1000))
    await #expect(throws: KapeAuthError.sessionEnded) { try await handle.identityToken() }
  }

  @Test("a token that the backend refuses is renewed once, and not again") func refusedToken() async throws {
    try await signIn()
    // One that follows nothing: after a renewal it asks for no subscriptions of its own accord.
    let handle = try setup.handle()
    let first = try await handle.identityToken()
    setup.backend.change { state in
      state.refusedTokens = [first]
      state.subscriptions = [
        KapeSubscription(id: "s", status: .active, source: "web", tier: "premium", entitlements: ["xv.vpn"])
      ]
    }
    try await handle.activateSubscription(for: .vpn)
    #expect(setup.backend.refreshCount() == 1)
    setup.backend.fail("/subscriptions", .status(401, [:]), .status(401, [:]))
    let error = await #expect(throws: KapeAuthError.self) { try await handle.activateSubscription(for: .vpn) }
    guard case .refused(code: "invalid_token", _) = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(setup.backend.refreshCount() == 2)
  }

  @Test("429: until the time that the answer names nothing is asked again; the next ask after it works")
  func rateLimit()
    async throws
  {
    try await signIn()
    setup.clock.advance(by: .seconds(1000))
    setup.backend.fail("/token", .status(429, ["retry-after": "30"]))
    let until = setup.clock.wallTime + 30
    for _ in 0..<3 {
      await #expect(throws: KapeAuthError.rateLimited(until: until)) { try await handle.identityToken() }
    }
    let process = try setup.handle()
    await #expect(throws: KapeAuthError.rateLimited(until: until)) { try await process.identityToken() }
    #expect(setup.backend.refreshCount() == 1)
    setup.clock.advance(by: .seconds(30))
    _ = try await process.identityToken()
    #expect(setup.backend.refreshCount() == 2)
  }

  @Test("an issuer that does not rotate keeps its refresh token") func noRotation() throws {
    var session = StoredSession(kind: .account, issuer: "i", clientId: "c", userId: "u")
    session.refreshToken = "r"
    session.refreshAttempt = "a"
    let response = BackendResponse(
      status: 200, body: Data(#"{"access_token":"opaque","token_type":"bearer","expires_in":60}"#.utf8))
    let now = Date(timeIntervalSince1970: 1000)
    session.take(try TokenGrant(response, now: now), at: now)
    #expect(session.refreshToken == "r" && session.refreshAttempt == nil)
    #expect(session.accessToken == "opaque" && session.accessTokenExpiry == now + 60)
  }
}

/// Keeps what comes before a renewal leaves, and fails with what comes after.
final class ForgetfulStorage: StorageCallbackProtocol {
  struct Failure: Error {}

  private let files: FileStorage

  init(folder: String) { files = FileStorage(folder: folder) }

  func storeData(storageId: String, data: Data) throws {
    let session = try? JSONDecoder().decode(StoredSession.self, from: data)
    guard session == nil || session?.refreshAttempt != nil else { throw Failure() }
    try files.storeData(storageId: storageId, data: data)
  }

  func retrieveData(storageId: String) throws -> Data? { try files.retrieveData(storageId: storageId) }
}
