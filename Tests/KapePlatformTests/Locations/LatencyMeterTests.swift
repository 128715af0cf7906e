import KapeProtocols
import Synchronization
import Testing

@testable import KapePlatform

/// Answers from a script: for each place and way, one entry a call; the last one stays.
final class ScriptedLatency: LatencyProbe {
  enum Answer: Sendable {
    case after(Int)
    case nothing, notPermitted
  }
  struct Key: Hashable { let address: IPAddress, method: LatencyMethod }

  private struct State {
    var script: [Key: [Answer]] = [:]
    var calls: [Key] = []
    var running = 0
    var mostAtOnce = 0
  }
  private let state = Mutex(State())

  func set(_ address: IPAddress, _ method: LatencyMethod, _ answers: Answer...) {
    state.withLock { $0.script[Key(address: address, method: method)] = answers }
  }

  var calls: [Key] { state.withLock { $0.calls } }
  var mostAtOnce: Int { state.withLock { $0.mostAtOnce } }

  func roundTrip(
    to target: LatencyTarget, by method: LatencyMethod, within limit: Duration
  ) async throws -> Duration? {
    let answer = state.withLock { state in
      let key = Key(address: target.address, method: method)
      state.calls.append(key)
      state.running += 1
      state.mostAtOnce = max(state.mostAtOnce, state.running)
      guard let answers = state.script[key], let first = answers.first else { return Answer.nothing }
      if answers.count > 1 { state.script[key]?.removeFirst() }
      return first
    }
    await Task.yield()
    state.withLock { $0.running -= 1 }
    try Task.checkCancellation()
    switch answer {
    case .after(let milliseconds): return .milliseconds(milliseconds)
    case .nothing: return nil
    case .notPermitted: throw LatencyNotPermitted()
    }
  }
}

@Suite("§5.4: round trips") struct LatencyMeterTests {
  private let probe = ScriptedLatency()

  @Test(
    "minimum, average, median and the nearest rank of 90 %",
    arguments: [
      ([7], [7, 7, 7, 7]), ([30, 10], [10, 20, 20, 30]), ([30, 10, 50], [10, 30, 30, 50]),
      ([5, 1, 2, 3, 4, 6, 7, 8, 9, 10], [1, 5.5, 5.5, 9]), ([5, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11], [1, 6, 6, 10]),
    ] as [([Int], [Double])])
  func statistics(_ samples: [Int], _ expected: [Double]) throws {
    let statistics = try #require(LatencyStatistics(samples.map { .milliseconds($0) }))
    #expect(
      [statistics.minimumMs, statistics.averageMs, statistics.medianMs, statistics.p90Ms].map {
        ($0 * 1e6).rounded() / 1e6
      }
        == expected)
    #expect(statistics.answered == samples.count && statistics.lost == 0)
  }

  @Test("what was lost is counted and in no figure; nothing answered is no statistics")
  func lost() throws {
    let statistics = try #require(LatencyStatistics([.milliseconds(10), nil, .milliseconds(20), nil]))
    #expect(statistics.averageMs == 15 && statistics.answered == 2 && statistics.lost == 2)
    #expect(LatencyStatistics([nil, nil]) == nil)
    #expect(LatencyStatistics([]) == nil)
  }

  @Test("echo where it is permitted, as often as asked for")
  func echo() async throws {
    let target = LatencyTarget(try address("192.0.2.1"))
    probe.set(target.address, .echo, .after(10), .after(20), .nothing, .after(30), .after(40))
    let statistics = try #require(try await LatencyMeter(probe).measure(target))
    #expect(statistics.medianMs == 25 && statistics.lost == 1)
    #expect(probe.calls.map(\.method) == Array(repeating: .echo, count: 5))
  }

  @Test("where it is not permitted: connections, and the family is asked for no echo again")
  func notPermitted() async throws {
    let meter = LatencyMeter(probe, .init(samples: 2))
    for text in ["192.0.2.1", "192.0.2.2", "2001:db8::1"] {
      probe.set(try address(text), .echo, text.contains(":") ? .after(1) : .notPermitted)
      probe.set(try address(text), .connection, .after(5))
    }
    #expect(try await meter.measure(LatencyTarget(address("192.0.2.1")))?.answered == 2)
    #expect(try await meter.measure(LatencyTarget(address("192.0.2.2")))?.answered == 2)
    #expect(try await meter.measure(LatencyTarget(address("2001:db8::1")))?.medianMs == 1)
    #expect(probe.calls.map(\.method) == [.echo, .connection, .connection, .connection, .connection, .echo, .echo])
  }

  @Test("where it is not answered: connections, and what was lost with it does not count")
  func notAnswered() async throws {
    let target = LatencyTarget(try address("192.0.2.1"))
    probe.set(target.address, .connection, .after(5))
    let statistics = try #require(try await LatencyMeter(probe, .init(samples: 3)).measure(target))
    #expect(statistics.answered == 3 && statistics.lost == 0)
    #expect(probe.calls.map(\.method) == [.echo, .echo, .connection, .connection, .connection])
  }

  @Test("nobody there: nil after two tries of each")
  func nobody() async throws {
    let target = LatencyTarget(try address("192.0.2.1"))
    #expect(try await LatencyMeter(probe).measure(target) == nil)
    #expect(probe.calls.map(\.method) == [.echo, .echo, .connection, .connection])
    probe.set(target.address, .echo, .notPermitted)
    probe.set(target.address, .connection, .notPermitted)
    #expect(try await LatencyMeter(probe).measure(target) == nil)
  }

  @Test("many at a time, and no more than that; those that answered are in the result")
  func many() async throws {
    let targets = try (1...40).map { LatencyTarget(try address("192.0.2.\($0)")) }
    for (number, target) in targets.enumerated() where number % 2 == 0 {
      probe.set(target.address, .echo, .after(number))
    }
    let found = try await LatencyMeter(probe, .init(samples: 2, width: 4)).measure(targets)
    #expect(found.count == 20)
    #expect(found[targets[10]]?.medianMs == 10)
    #expect(probe.mostAtOnce <= 4 && probe.mostAtOnce > 1)
  }

  @Test("cancelled it throws")
  func cancelled() async throws {
    let targets = try (1...40).map { LatencyTarget(try address("192.0.2.\($0)")) }
    let task = Task { [probe] in
      withUnsafeCurrentTask { $0?.cancel() }
      return try await LatencyMeter(probe).measure(targets)
    }
    await #expect(throws: CancellationError.self) { try await task.value }
  }
}
