import Foundation
import KapeProtocols
import Synchronization
import Testing

@testable import KapePlatform

/// Tells what it was given, and counts.
private final class ScriptedDirectory: LocationDirectory {
  let source = "https://api.example.com"
  private let state: Mutex<(result: Result<[LocationRecord], KapeLocationError>, calls: Int)>

  init(_ locations: [LocationRecord]) { state = Mutex((.success(locations), 0)) }

  var calls: Int { state.withLock { $0.calls } }
  func set(_ result: Result<[LocationRecord], KapeLocationError>) { state.withLock { $0.result = result } }

  func locations() async throws -> [LocationRecord] {
    try state.withLock { state in
      state.calls += 1
      return state.result
    }.get()
  }
}

private final class ScriptedTransfers: TransferProbe {
  private let state = Mutex((rates: [IPAddress: TransferRates](), asked: [IPAddress](), running: 0, most: 0))
  var asked: [IPAddress] { state.withLock { $0.asked } }
  var most: Int { state.withLock { $0.most } }
  func set(_ address: IPAddress, _ rates: TransferRates) { state.withLock { $0.rates[address] = rates } }

  func rates(_ address: IPAddress) async throws -> TransferRates {
    let rates = state.withLock { state in
      state.asked.append(address)
      state.running += 1
      state.most = max(state.most, state.running)
      return state.rates[address] ?? TransferRates()
    }
    await Task.yield()
    state.withLock { $0.running -= 1 }
    return rates
  }
}

@Suite("§5.4: KapeLocationService") struct KapeLocationServiceTests {
  private let folder: ScratchFolder
  private let container: SharedContainer
  private let directory: ScriptedDirectory
  private let latency = ScriptedLatency()
  private let transfers = ScriptedTransfers()
  private let network = Value(
    LocalNetwork(
      fingerprint: NetworkFingerprint(country: "FR", region: "Europe/Paris", network: "10.0.0.0/24 by 10.0.0.1"),
      point: GeographicPoint(latitude: 48.85, longitude: 2.35)))
  private let now = Value(Date(timeIntervalSince1970: 1_700_000_000))

  private final class Value<Content: Sendable>: Sendable {
    private let state: Mutex<Content>
    init(_ content: Content) { state = Mutex(content) }
    var content: Content {
      get { state.withLock { $0 } }
      set { state.withLock { $0 = newValue } }
    }
  }

  private static func record(_ id: String, _ number: Int, _ continent: String, _ latitude: Double) throws
    -> LocationRecord
  {
    LocationRecord(
      id: id, name: id.uppercased(), country: "FR", continent: continent, latitude: latitude, longitude: 2,
      isGeolocated: false, popularityOrder: nil, testAddresses: [try address("192.0.2.\(number)")])
  }

  init() throws {
    let made = try ScratchFolder()
    folder = made
    container = try SharedContainer(group: "g", home: nil) { $0 == "KAPE_STATE_HOME" ? made.path : nil }
    directory = ScriptedDirectory([
      try Self.record("a", 1, "Europe", 50), try Self.record("b", 2, "Asia", 10), try Self.record("c", 3, "Europe", 60),
    ])
    latency.set(try address("192.0.2.1"), .echo, .after(120))
    latency.set(try address("192.0.2.2"), .echo, .after(20))
  }

  private func service() -> KapeLocationService {
    KapeLocationService(
      LocationEnvironment(
        container: container, directory: directory, latency: latency, transfers: transfers,
        network: { [network] in network.content }, now: { [now] in now.content },
        logger: KapeLogger(subsystem: "test", category: "test") { _, _ in }))
  }

  private func ids(_ service: KapeLocationService) -> [String] { service.smartLocations.map(\.id) }

  @Test("the list in the backend's order, and by continent, without ratings")
  func list() async throws {
    let service = service()
    #expect(service.allLocations == [] && service.locationsByContinent == [:])
    try await service.fetchLocations()
    #expect(service.allLocations.map(\.id) == ["a", "b", "c"])
    #expect(service.allLocations.allSatisfy { $0.rating == nil })
    #expect(service.locationsByContinent.mapValues { $0.map(\.id) } == ["Europe": ["a", "c"], "Asia": ["b"]])
  }

  @Test("it is there again in another run; of another backend it is not; a failure keeps the last one")
  func keptList() async throws {
    try await service().fetchLocations()
    let again = service()
    #expect(again.allLocations.map(\.id) == ["a", "b", "c"])
    directory.set(.failure(.network("no route")))
    await #expect(throws: KapeLocationError.network("no route")) { try await again.fetchLocations() }
    #expect(again.allLocations.count == 3)
    #expect(LocationList.load(container, source: "https://other.example.com") == nil)
    try folder.write("g/locations.json", "{")
    #expect(service().allLocations == [])
  }

  @Test("a folder that cannot be written to costs the next run's list alone")
  func unwritable() async throws {
    try folder.write("g", "a file where the folder should be")
    let service = service()
    try await service.fetchLocations()
    try await service.fetchSmartLocations()
    #expect(service.allLocations.count == 3 && ids(service) == ["b", "a", "c"])
  }

  @Test("measuring takes a list first")
  func notFetched() async throws {
    await #expect(throws: KapeLocationError.notFetched) { try await service().fetchSmartLocations() }
    #expect(latency.calls.isEmpty)
  }

  @Test("best first with ratings; those without an answer last, as unknown")
  func smart() async throws {
    let service = service()
    try await service.fetchLocations()
    try await service.fetchSmartLocations()
    #expect(ids(service) == ["b", "a", "c"])
    #expect(service.smartLocations.map(\.rating) == [.excellent, .ok, .unknown])
    #expect(service.allLocations.allSatisfy { $0.rating == nil })
  }

  @Test("extendedTest: transfers with those that answered, which tell; without it there are none")
  func extended() async throws {
    let service = service()
    try await service.fetchLocations()
    try await service.fetchSmartLocations(extendedTest: false)
    #expect(transfers.asked == [])
    transfers.set(try address("192.0.2.2"), TransferRates(download: 1e6))
    // What was measured without them does not stand for a measurement with them.
    try await service.fetchSmartLocations()
    #expect(Set(transfers.asked) == [try address("192.0.2.1"), try address("192.0.2.2")])
    #expect(transfers.most <= 2)
    #expect(ids(service) == ["a", "b", "c"])
    #expect(service.smartLocations.map(\.rating) == [.ok, .degraded, .unknown])
    // The other way round it does.
    try await service.fetchSmartLocations(extendedTest: false)
    #expect(service.smartLocations.map(\.rating) == [.ok, .degraded, .unknown])
    #expect(transfers.asked.count == 2)
  }

  @MainActor
  @Test("progress: once a location, one after the other, off the main actor")
  func progress() async throws {
    let service = service()
    try await service.fetchLocations()
    let seen = Value([KapeSmartLocationProgress]())
    let onMain = Value(0)
    try await service.fetchSmartLocations { progress in
      if Thread.isMainThread { onMain.content += 1 }
      seen.content.append(progress)
    }
    #expect(onMain.content == 0)
    #expect(seen.content.map(\.completed) == [1, 2, 3])
    #expect(seen.content.allSatisfy { $0.total == 3 })
    #expect(
      Dictionary(uniqueKeysWithValues: seen.content.map { ($0.locationId, $0.pingMs) }) == [
        "a": 120, "b": 20, "c": nil,
      ])
  }

  @Test("a network that was measured before gives its result at once, for 30 days, in another run too")
  func known() async throws {
    let first = service()
    try await first.fetchLocations()
    try await first.fetchSmartLocations()
    let calls = latency.calls.count
    let second = service()
    #expect(ids(second) == ["b", "a", "c"])
    try await second.fetchSmartLocations()
    #expect(latency.calls.count == calls)
    now.content += 30 * 86_400
    #expect(ids(service()) == [])
    try await second.fetchSmartLocations()
    #expect(latency.calls.count > calls)
  }

  @Test("another network is measured, and the first one's result stays")
  func otherNetwork() async throws {
    let service = service()
    try await service.fetchLocations()
    try await service.fetchSmartLocations()
    let home = network.content
    network.content.fingerprint.station = "another"
    latency.set(try address("192.0.2.1"), .echo, .after(1))
    #expect(ids(self.service()) == [])
    try await service.fetchSmartLocations()
    #expect(ids(service) == ["a", "b", "c"])
    network.content = home
    try await service.fetchSmartLocations()
    #expect(ids(service) == ["b", "a", "c"])
  }

  @Test("while a tunnel is up nothing is measured: what was before, or an error")
  func tunnel() async throws {
    let service = service()
    try await service.fetchLocations()
    network.content = LocalNetwork(isTunnel: true)
    await #expect(throws: KapeLocationError.tunnelIsUp) { try await service.fetchSmartLocations() }
    #expect(latency.calls.isEmpty)
    network.content.isTunnel = false
    try await service.fetchSmartLocations()
    let calls = latency.calls.count
    network.content = LocalNetwork(fingerprint: NetworkFingerprint(country: "DE"), isTunnel: true)
    try await self.service().fetchSmartLocations()
    #expect(latency.calls.count == calls)
  }

  @Test("what nobody answered is shown and not kept")
  func offline() async throws {
    for number in 1...2 { latency.set(try address("192.0.2.\(number)"), .echo, .nothing) }
    let service = service()
    try await service.fetchLocations()
    try await service.fetchSmartLocations()
    #expect(service.smartLocations.map(\.rating) == [.unknown, .unknown, .unknown])
    // By distance, then.
    #expect(ids(service) == ["a", "c", "b"])
    #expect(SmartLocationCache.load(container).entries.isEmpty)
  }

  @Test("cancelled it throws and changes nothing")
  func cancelled() async throws {
    let service = service()
    try await service.fetchLocations()
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      try await service.fetchSmartLocations()
    }
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(ids(service) == [])
    #expect(SmartLocationCache.load(container).entries.isEmpty)
  }

  @Test("a location that is gone from the list is gone from the measured ones")
  func gone() async throws {
    let service = service()
    try await service.fetchLocations()
    try await service.fetchSmartLocations()
    directory.set(.success([try Self.record("a", 1, "Europe", 50)]))
    try await service.fetchLocations()
    #expect(ids(service) == ["a"])
    try await service.fetchSmartLocations()
    #expect(ids(service) == ["a"])
  }
}

@Suite("§5.1: the mode .auto") struct AutomaticLocationTests {
  private let now = Date(timeIntervalSince1970: 1_700_000_000)
  private let home = NetworkFingerprint(country: "FR", region: "Europe/Paris", network: "n")

  private func list(_ ids: String...) -> [LocationRecord] {
    ids.map {
      LocationRecord(
        id: $0, name: $0, country: "FR", continent: "Europe", latitude: 0, longitude: 0, isGeolocated: false,
        popularityOrder: nil, testAddresses: [])
    }
  }

  private func cache(_ ids: (String, Int?)...) throws -> SmartLocationCache {
    SmartLocationCache([
      SmartLocationCache.Entry(
        fingerprint: home, measuredAt: now, isExtended: false,
        assessments: ids.map { id, ms in
          LocationAssessment(locationId: id, ping: ms.flatMap { LatencyStatistics([.milliseconds($0)]) })
        })
    ])
  }

  private func choose(
    _ list: [LocationRecord], _ cache: SmartLocationCache, _ fingerprint: NetworkFingerprint? = nil
  ) -> String? {
    AutomaticLocation.choose(list: list, cache: cache, fingerprint: fingerprint ?? home, now: now)
  }

  @Test("the best-rated entry of what was measured; else the first of the list; else none")
  func choice() throws {
    #expect(choose(list("a", "b"), try cache(("b", 20), ("a", 90))) == "b")
    #expect(choose(list("a", "b"), SmartLocationCache()) == "a")
    #expect(choose([], SmartLocationCache()) == nil)
    #expect(choose([], try cache(("b", 20))) == "b")
  }

  @Test("what is gone from the list, or did not answer, is passed over")
  func passedOver() throws {
    #expect(choose(list("a", "c"), try cache(("b", 20), ("c", 90))) == "c")
    #expect(choose(list("a", "c"), try cache(("c", nil))) == "a")
  }

  @Test("another network's measurement is better than none; one that is too old is none")
  func otherNetwork() throws {
    #expect(choose(list("a", "b"), try cache(("b", 20)), NetworkFingerprint(country: "DE")) == "b")
    let later = AutomaticLocation.choose(
      list: list("a", "b"), cache: try cache(("b", 20)), fingerprint: home, now: now + 30 * 86_400)
    #expect(later == "a")
  }

  @Test("from the files of the group, of this backend alone")
  func files() throws {
    let folder = try ScratchFolder()
    let container = try SharedContainer(group: "g", home: nil) { $0 == "KAPE_STATE_HOME" ? folder.path : nil }
    func choose(_ source: String) -> String? {
      AutomaticLocation.choose(container, source: source, fingerprint: home, now: now)
    }
    #expect(choose("https://api.example.com") == nil)
    try LocationList(source: "https://api.example.com", fetchedAt: now, locations: list("a", "b")).save(container)
    #expect(choose("https://api.example.com") == "a")
    #expect(choose("https://other.example.com") == nil)
    try cache(("b", 20)).save(container)
    #expect(choose("https://api.example.com") == "b")
  }
}
