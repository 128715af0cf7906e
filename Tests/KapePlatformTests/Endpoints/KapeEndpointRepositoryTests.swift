import Foundation
import KapeProtocols
import Testing

@testable import KapePlatform

@Suite("Discovery of endpoints") struct KapeEndpointRepositoryTests {
  private let folder: ScratchFolder
  private let container: SharedContainer
  private let directory = ScriptedEndpoints()
  private let latency = ScriptedLatency()
  private let time = ManualTime()
  private let log = LogLines()

  init() throws {
    let made = try ScratchFolder()
    folder = made
    container = try SharedContainer(group: "g", home: nil) { $0 == "KAPE_STATE_HOME" ? made.path : nil }
    directory.set("fr", try Sample.wireGuard("192.0.2.1"), try Sample.wireGuard("192.0.2.2"))
  }

  /// Each is as in another process.
  private func repository() -> KapeEndpointRepository {
    KapeEndpointRepository(container: container, directory: directory, latency: latency, clock: time, logger: log)
  }

  private func addresses(_ found: KapeEndpointRepository.Endpoints) -> [String] {
    found.endpoints.map { "\($0.address)" }
  }

  @Test("the backend is asked for the location and the protocols, and its order is kept")
  func asks() async throws {
    let found = try await repository().endpoints("fr", [.wireguard, .openvpn])
    #expect(addresses(found) == ["192.0.2.1", "192.0.2.2"] && !found.isOutdated)
    #expect(directory.questions == [.init(location: "fr", protocols: "openvpn,wireguard")])
  }

  @Test("for an hour it is not asked again, by another process neither; for other protocols it is")
  func kept() async throws {
    let repository = repository()
    _ = try await repository.endpoints("fr", [.wireguard])
    time.advance(by: .seconds(3599))
    #expect(addresses(try await repository.endpoints("fr", [.wireguard])).count == 2)
    #expect(addresses(try await self.repository().endpoints("fr", [.wireguard])).count == 2)
    #expect(directory.questions.count == 1)
    _ = try await repository.endpoints("fr", [.openvpn])
    #expect(directory.questions.count == 2)
    time.advance(by: .seconds(1))
    directory.set("fr", try Sample.wireGuard("192.0.2.3"))
    #expect(addresses(try await self.repository().endpoints("fr", [.wireguard])) == ["192.0.2.3"])
    #expect(directory.questions.count == 3)
  }

  @Test("a clock that was put back outdates what is kept")
  func clockBack() async throws {
    _ = try await repository().endpoints("fr", [.wireguard])
    time.moveWall(by: -100_000)
    _ = try await repository().endpoints("fr", [.wireguard])
    #expect(directory.questions.count == 2)
  }

  @Test(
    "when the network fails, an outdated answer is used, and the log says so",
    arguments: [
      DiscoveryError.network("no route"), .tooManyRequests(seconds: 9), .status(503), .unusable(": not JSON"),
    ])
  func outdated(_ error: DiscoveryError) async throws {
    _ = try await repository().endpoints("fr", [.wireguard])
    time.advance(by: .seconds(40 * 86_400))
    directory.fail("fr", error)
    let found = try await repository().endpoints("fr", [.wireguard])
    #expect(addresses(found) == ["192.0.2.1", "192.0.2.2"] && found.isOutdated)
    #expect(log.contains("warning: [endpoints] those of fr are from 2023-11-14T22:13:20Z, outdated: \(error)"))
    #expect(!log.contains("192.0.2."))
  }

  @Test("the network of the token fails likewise")
  func accessFails() async throws {
    _ = try await repository().endpoints("fr", [.wireguard])
    directory.refuse(DiscoveryError.network("no route"))
    let found = try await repository().endpoints("fr", [.wireguard])
    #expect(addresses(found).count == 2 && !found.isOutdated)
    #expect(directory.questions.count == 1)
  }

  @Test(
    "what the backend does say is not papered over",
    arguments: [
      DiscoveryError.unknownLocation("fr"), .refusedToken, .status(418),
    ])
  func refusals(_ error: DiscoveryError) async throws {
    _ = try await repository().endpoints("fr", [.wireguard])
    time.advance(by: .seconds(4000))
    directory.fail("fr", error)
    await #expect(throws: error) { try await repository().endpoints("fr", [.wireguard]) }
  }

  @Test("§16: without a session or a subscription a kept answer is of no use either")
  func noSession() async throws {
    _ = try await repository().endpoints("fr", [.wireguard])
    directory.refuse(TerminalStartError(.notSignedIn))
    let error = await #expect(throws: TerminalStartError.self) { try await repository().endpoints("fr", [.wireguard]) }
    #expect(error?.error == .notSignedIn)
  }

  @Test("without anything kept, a failure is one")
  func failure() async throws {
    directory.fail("fr", DiscoveryError.network("no route"))
    await #expect(throws: DiscoveryError.network("no route")) { try await repository().endpoints("fr", [.wireguard]) }
    directory.set("fr", try Sample.wireGuard("192.0.2.1"))
    directory.say(location: "de")
    await #expect(throws: DiscoveryError.unusable(".location_id: another location than was asked for")) {
      try await repository().endpoints("fr", [.wireguard])
    }
  }

  @Test("a kept answer that is corrupt never stops a start, and is replaced", arguments: ["", "{", "null", "[{}]"])
  func corrupt(_ text: String) async throws {
    try folder.write("g/endpoints.json", text)
    #expect(addresses(try await repository().endpoints("fr", [.wireguard])).count == 2)
    #expect(text == "[{}]" || log.contains("warning: [endpoints] what was kept cannot be read"))
    #expect(addresses(try await repository().endpoints("fr", [.wireguard])).count == 2)
    #expect(directory.questions.count == 1)
  }

  @Test("a folder that cannot be read or written never stops a start, and the log says so")
  func unwritable() async throws {
    try folder.write("g", "a file where the folder should be")
    #expect(addresses(try await repository().endpoints("fr", [.wireguard])).count == 2)
    #expect(log.contains("warning: [endpoints] they are not kept for the next start"))
    try FileManager.default.removeItem(atPath: folder.path + "/g")
    try FileManager.default.createDirectory(atPath: container.endpoints, withIntermediateDirectories: true)
    #expect(addresses(try await repository().endpoints("fr", [.wireguard])).count == 2)
    #expect(log.contains("warning: [endpoints] what was kept cannot be read"))
  }

  @Test("anew: the backend is asked although an answer is fresh, but not sooner than 30 s after")
  func anew() async throws {
    let repository = repository()
    _ = try await repository.endpoints("fr", [.wireguard])
    directory.set("fr", try Sample.wireGuard("192.0.2.3"))
    time.advance(by: .seconds(29))
    #expect(addresses(try await repository.endpoints("fr", [.wireguard], anew: true)).count == 2)
    #expect(directory.questions.count == 1)
    time.advance(by: .seconds(1))
    #expect(addresses(try await repository.endpoints("fr", [.wireguard], anew: true)) == ["192.0.2.3"])
    #expect(directory.questions.count == 2)
    time.advance(by: .seconds(30))
    directory.fail("fr", DiscoveryError.network("no route"))
    let found = try await repository.endpoints("fr", [.wireguard], anew: true)
    #expect(addresses(found) == ["192.0.2.3"] && !found.isOutdated)
  }

  @Test("429: it is not asked before the time that it named")
  func tooMany() async throws {
    let repository = repository()
    directory.fail("fr", DiscoveryError.tooManyRequests(seconds: 90))
    await #expect(throws: DiscoveryError.tooManyRequests(seconds: 90)) {
      try await repository.endpoints("fr", [.wireguard])
    }
    directory.set("fr", try Sample.wireGuard("192.0.2.1"))
    time.advance(by: .milliseconds(88_500))
    await #expect(throws: DiscoveryError.tooManyRequests(seconds: 2)) {
      try await repository.endpoints("fr", [.wireguard])
    }
    #expect(directory.questions.count == 1)
    time.advance(by: .milliseconds(1500))
    #expect(addresses(try await repository.endpoints("fr", [.wireguard])) == ["192.0.2.1"])
  }

  @Test("the way to the servers is measured when an answer comes, and kept with it")
  func latencies() async throws {
    latency.set(try address("192.0.2.2"), .echo, .after(30))
    let first = try await repository().endpoints("fr", [.wireguard])
    #expect(first.latencies == [try address("192.0.2.2"): .milliseconds(30)])
    let calls = latency.calls.count
    #expect(calls > 0)
    #expect(try await repository().endpoints("fr", [.wireguard]).latencies == first.latencies)
    #expect(latency.calls.count == calls)
  }

  @Test("with one server there is nothing to choose from, and nothing is measured")
  func oneServer() async throws {
    directory.set("fr", try Sample.wireGuard("192.0.2.1"), try Sample.openVPN("192.0.2.1", .udp))
    _ = try await repository().endpoints("fr", [.wireguard, .openvpn])
    #expect(latency.calls.isEmpty)
  }

  @Test("servers that do not answer hold a start up for a second at most; what was measured by then counts")
  func slowServers() async throws {
    let slow = HangingLatency(answers: try address("192.0.2.1"))
    let repository = KapeEndpointRepository(
      container: container, directory: directory, latency: slow, clock: time, logger: log)
    let task = Task { try await repository.endpoints("fr", [.wireguard]) }
    await slow.whenHanging()
    time.advance(by: .milliseconds(999))
    #expect(time.timers == 1)
    time.advance(by: .milliseconds(1))
    let found = try await task.value
    #expect(found.latencies == [try address("192.0.2.1"): .milliseconds(5)])
    #expect(addresses(found).count == 2)
  }
}

/// Answers for one place at once, and for others never.
private final class HangingLatency: LatencyProbe {
  private let answers: IPAddress
  private let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
  private let done = Changing(0)

  init(answers: IPAddress) { self.answers = answers }

  func whenHanging() async {
    for await _ in stream { return }
  }

  func roundTrip(
    to target: LatencyTarget, by method: LatencyMethod, within limit: Duration
  ) async throws -> Duration? {
    if target.address == answers {
      done.value += 1
      return .milliseconds(5)
    }
    // Until the other is measured.
    while done.value < 2 { await Task.yield() }
    try await Task.sleep(for: .milliseconds(50))
    continuation.yield()
    try await Task.sleep(for: .seconds(3600))
    return nil
  }
}
