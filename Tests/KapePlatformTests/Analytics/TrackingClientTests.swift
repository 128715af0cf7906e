import Foundation
import KapeTestSupport
import Synchronization
import Testing

@testable import KapePlatform

/// §3.4 and §16 on tracking, against a collector in another process, in virtual time.
@Suite struct TrackingClientTests {
  private let clock = TestClock()
  private let lines = Lines()

  final class Lines: Sendable {
    private let lines = Mutex<[String]>([])
    var all: [String] { lines.withLock { $0 } }
    func add(_ line: String) { lines.withLock { $0.append(line) } }
  }

  private func client(
    _ collector: Collector?, identity: TrackingIdentity = TrackingIdentity(path: nil),
    policy: TrackingClient.Policy = TrackingClient.Policy()
  ) -> TrackingClient {
    let lines = lines
    return TrackingClient(
      url: collector?.url, http: KapeHTTPClient(allowsPlainHTTP: true), identity: identity,
      logger: KapeLogger(subsystem: "t", category: "t") { lines.add("\($0) \($1)") }, clock: clock,
      date: { Date(timeIntervalSince1970: 1_900_000_000.5) }, policy: policy)
  }

  private func ready(_ collector: Collector, policy: TrackingClient.Policy = TrackingClient.Policy()) async
    -> TrackingClient
  {
    let client = client(collector, policy: policy)
    await client.initializeAsync(config: .test)
    await client.optInTrackingAsync()
    return client
  }

  private func track(_ client: TrackingClient, _ names: String...) async {
    for name in names { await client.trackAsync(event: name, properties: ["n": name], category: .qualityMetrics) }
  }

  @Test(arguments: [true, false])
  func tracking_nothingIsSentBeforeTheUserOptsIn(_ optedOutByDefault: Bool) async throws {
    let collector = try await Collector()
    let client = client(collector)
    await track(client, "before initialize")
    var configuration = MixpanelConfiguration.test
    configuration.optOutTrackingByDefault = optedOutByDefault
    await client.initializeAsync(config: configuration)
    await track(client, "before opting in")
    await client.flushAsync()
    #expect(clock.sleepers == 0)
    await client.optInTrackingAsync()
    await track(client, "after")
    await client.flushAsync()
    #expect(try await collector.names(1) == [["after"]])
    #expect(lines.all.isEmpty)
  }

  @Test func tracking_initializingOptsOutAgainWhenItIsTheDefault() async throws {
    let collector = try await Collector()
    let client = await ready(collector)
    await track(client, "one")
    await client.initializeAsync(config: .test)
    await track(client, "two")
    await client.flushAsync()
    await client.optInTrackingAsync()
    var configuration = MixpanelConfiguration.test
    configuration.optOutTrackingByDefault = false
    await client.initializeAsync(config: configuration)
    await track(client, "three")
    await client.flushAsync()
    #expect(try await collector.names(1) == [["three"]])
  }

  @Test func tracking_otherCategoriesAreNotRecorded() async throws {
    let collector = try await Collector()
    let client = await ready(collector)
    await client.trackAsync(event: "other", properties: [:], category: EventCategory(rawValue: "marketing"))
    await track(client, "ours")
    await client.flushAsync()
    let batches = collector.batches.map(\.batch)
    #expect(batches.map(\.names) == [["ours"]] && batches.first?.events.first?.category == "qualityMetrics")
  }

  @Test func tracking_withoutAnAddressEventsAreDroppedWithOneLine() async {
    let client = client(nil)
    await client.initializeAsync(config: .test)
    await track(client, "silent")
    #expect(lines.all.isEmpty)
    await client.optInTrackingAsync()
    await track(client, "one", "two")
    await client.flushAsync()
    #expect(lines.all == ["debug [tracking] the settings have no TrackingURL: events are dropped"])
    #expect(clock.sleepers == 0)
  }

  @Test func tracking_optingOutForgetsWhatWaits() async throws {
    let collector = try await Collector()
    let client = await ready(collector)
    await track(client, "one")
    await clock.whenAsleep()
    await client.optOutTrackingAsync()
    await track(client, "two")
    await client.optInTrackingAsync()
    await track(client, "three")
    await client.flushAsync()
    #expect(try await collector.names(1) == [["three"]])
  }

  @Test func eventsWaitForOthersAndGoTogether() async throws {
    let collector = try await Collector()
    let client = await ready(collector)
    await track(client, "one", "two")
    await clock.whenAsleep()
    clock.advance(by: .seconds(9))
    #expect(collector.batches.isEmpty)
    await track(client, "three")
    clock.advance(by: .seconds(1))
    #expect(try await collector.names(1) == [["one", "two", "three"]])
    let batch = try #require(collector.batches.first?.batch)
    #expect(batch.projectToken == "project" && !batch.distinctID.isEmpty)
    #expect(Set(batch.events.map(\.id)).count == 3 && batch.events.allSatisfy { $0.time == "2030-03-17T17:46:40.500Z" })
    #expect(batch.events.map(\.properties) == [["n": "one"], ["n": "two"], ["n": "three"]])
  }

  @Test func aFullQueueIsSentAtOnce() async throws {
    let collector = try await Collector()
    var policy = TrackingClient.Policy()
    policy.full = 3
    let client = await ready(collector, policy: policy)
    await track(client, "one", "two", "three")
    #expect(try await collector.names(1) == [["one", "two", "three"]])
  }

  @Test func aHundredAtMostGoTogether() async throws {
    let collector = try await Collector()
    var policy = TrackingClient.Policy()
    policy.full = 1000
    let client = await ready(collector, policy: policy)
    for index in 1...150 { await track(client, "\(index)") }
    await client.flushAsync()
    let names = try await collector.names(2)
    #expect(names.map(\.count) == [100, 50] && names.joined().elementsEqual((1...150).map(String.init)))
  }

  @Test func whatCouldNotBeSentIsSentLaterOnce() async throws {
    let collector = try await Collector("500,500,202")
    let client = await ready(collector)
    await track(client, "one")
    await client.flushAsync()
    await track(client, "two")
    for delay in [30, 60] {
      await clock.whenAsleep()
      clock.advance(by: .seconds(delay - 1))
      let before = collector.batches.count
      #expect(clock.sleepers == 1)
      clock.advance(by: .seconds(1))
      _ = try await collector.names(before + 1)
    }
    await client.flushAsync()
    let batches = collector.batches
    #expect(batches.map(\.status) == [500, 500, 202])
    #expect(batches.map(\.batch.names) == [["one"], ["one", "two"], ["one", "two"]])
    #expect(batches[1].batch == batches[2].batch && batches[0].batch.events[0] == batches[2].batch.events[0])
    #expect(clock.sleepers == 0)
  }

  @Test func aCollectorThatAsksForPatienceGetsIt() async throws {
    let collector = try await Collector("429:7,202")
    let client = await ready(collector)
    await track(client, "one")
    await client.flushAsync()
    await clock.whenAsleep()
    await track(client, "two")
    await client.flushAsync()
    clock.advance(by: .seconds(6))
    await client.flushAsync()
    #expect(collector.batches.map(\.status) == [429])
    clock.advance(by: .seconds(1))
    #expect(try await collector.names(2) == [["one"], ["one", "two"]])
  }

  @Test func whatIsRefusedIsNotSentAgain() async throws {
    let collector = try await Collector("400,202")
    let client = await ready(collector)
    await track(client, "bad")
    await client.flushAsync()
    await track(client, "good")
    await client.flushAsync()
    #expect(try await collector.names(2) == [["bad"], ["good"]])
    #expect(lines.all == ["warning [tracking] 1 events are dropped: the collector answered with status 400"])
  }

  @Test func aCollectorThatIsNotThereIsAskedAgain() async throws {
    let client = TrackingClient(
      url: URL(string: "http://127.0.0.1:1/"), http: KapeHTTPClient(allowsPlainHTTP: true),
      identity: TrackingIdentity(path: nil), clock: clock)
    await client.initializeAsync(config: .test)
    await client.optInTrackingAsync()
    await track(client, "one")
    await client.flushAsync()
    await clock.whenAsleep()
    #expect(clock.sleepers == 1)
  }

  @Test func theOldestGoWhenThereAreTooMany() async throws {
    let collector = try await Collector()
    var policy = TrackingClient.Policy()
    policy.most = 2
    let client = await ready(collector, policy: policy)
    await track(client, "one", "two", "three")
    await client.flushAsync()
    #expect(try await collector.names(1) == [["two", "three"]])
  }

  @Test func aResetIsAnotherUserForWhatFollows() async throws {
    let collector = try await Collector()
    let client = await ready(collector)
    await track(client, "one")
    await client.resetAsync()
    await track(client, "two")
    await client.flushAsync()
    #expect(try await collector.names(2) == [["one"], ["two"]])
    let owners = collector.batches.map(\.batch.distinctID)
    #expect(owners[0] != owners[1])
  }

  @Test func theIdentityIsKeptForTheNextProcess() async throws {
    let folder = try ScratchFolder()
    let identity = TrackingIdentity(path: folder.path + "/group/tracking.json")
    let first = await identity.current()
    #expect(await TrackingIdentity(path: folder.path + "/group/tracking.json").current() == first)
    let second = await identity.renew()
    #expect(await identity.current() == second && second != first)
    // A file that is nothing is replaced.
    try "{".write(toFile: folder.path + "/group/tracking.json", atomically: true, encoding: .utf8)
    let third = await identity.current()
    #expect(await identity.current() == third && third != second)
  }

  @Test func oneEventDoesNotLoseTheOthersOfItsBatch() async throws {
    let collector = try await Collector()
    let client = await ready(collector)
    var properties = Dictionary(uniqueKeysWithValues: (0..<70).map { ("key \($0)", "v") })
    properties["a"] = String(repeating: "ä", count: 1000)
    properties[String(repeating: "k", count: 129)] = "v"
    await client.trackAsync(event: "large", properties: properties, category: .qualityMetrics)
    await client.trackAsync(event: "", properties: [:], category: .qualityMetrics)
    await client.trackAsync(event: String(repeating: "e", count: 129), properties: [:], category: .qualityMetrics)
    await client.flushAsync()
    let event = try #require(collector.batches.first?.batch.events.first)
    #expect(collector.batches.first?.batch.names == ["large"])
    #expect(event.properties.count == 64 && event.properties["a"] == String(repeating: "ä", count: 512))
  }

  @Test func theProjectTokenIsInNoLog() async throws {
    let collector = try await Collector("400,500")
    let client = await ready(collector)
    await track(client, "one")
    await client.flushAsync()
    await track(client, "two")
    await client.flushAsync()
    #expect(lines.all.count == 2 && lines.all.allSatisfy { !$0.contains("project") })
  }
}
