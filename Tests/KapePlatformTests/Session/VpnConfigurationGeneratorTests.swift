import KapePlatform
import Synchronization
import Testing

private struct Plain: VpnConfiguration, Equatable {
  let vpnProtocolName = "wireguard"
  let number: Int
}

private struct Failure: Error, Equatable {}

private struct OneByOne: VpnConfigurationGenerator {
  let calls = Counter()
  var error: Failure?
  func nextConfiguration() async throws -> (any VpnConfiguration)? {
    calls.increment()
    if let error { throw error }
    return Plain(number: 1)
  }
}

private struct ByBatch: VpnConfigurationGenerator {
  let calls = Counter()
  var count = 2
  func generateConfigurations() async -> [any VpnConfiguration] {
    calls.increment()
    return (0..<count).map { Plain(number: $0) }
  }
}

private struct Neither: VpnConfigurationGenerator {}
private struct NeitherToo: VpnConfigurationGenerator {}

/// Wraps others, in the batch form, as one that puts lists together would.
private struct Chain: VpnConfigurationGenerator {
  let parts: [any VpnConfigurationGenerator]
  func generateConfigurations() async -> [any VpnConfiguration] {
    var all: [any VpnConfiguration] = []
    for part in parts {
      if let one = try? await part.nextConfiguration() { all.append(one) }
      all += await part.generateConfigurations()
    }
    return all
  }
}

private final class Counter: Sendable {
  private let count = Mutex(0)
  var value: Int { count.withLock { $0 } }
  func increment() { count.withLock { $0 += 1 } }
}

private final class Lines: Sendable {
  private let lines = Mutex([String]())
  var all: [String] { lines.withLock { $0 } }
  func append(_ line: String) { lines.withLock { $0.append(line) } }
}

@Suite struct VpnConfigurationGeneratorTests {
  private let lines = Lines()
  private var call: GeneratorCall { GeneratorCall { [lines] in lines.append($0) } }

  @Test("G7: one that gives one at a time is asked once, in the batch form too")
  func oneByOne() async throws {
    let generator = OneByOne()
    #expect(try await call.configurations(from: generator) as? [Plain] == [Plain(number: 1)])
    #expect(generator.calls.value == 1)
    #expect(try await generator.nextConfiguration() as? Plain == Plain(number: 1))
  }

  @Test("G6: one that gives batches is asked once for a batch; one at a time it gives the first")
  func batches() async throws {
    let generator = ByBatch()
    #expect(try await call.configurations(from: generator) as? [Plain] == [Plain(number: 0), Plain(number: 1)])
    #expect(generator.calls.value == 1)
    #expect(try await generator.nextConfiguration() as? Plain == Plain(number: 0))
    #expect(try await call.configurations(from: ByBatch(count: 0)).isEmpty)
    #expect(lines.all == [])
  }

  @Test("G4: what it throws comes through the form that cannot throw")
  func thrownThroughBatchForm() async {
    await #expect(throws: Failure()) { try await call.configurations(from: OneByOne(error: Failure())) }
    await #expect(throws: Failure()) { try await call.configurations(from: Relay(inner: OneByOne(error: Failure()))) }
  }

  /// Of the same form as what it wraps, by the call that cannot throw.
  private struct Relay: VpnConfigurationGenerator {
    let inner: any VpnConfigurationGenerator
    func generateConfigurations() async -> [any VpnConfiguration] { await inner.generateConfigurations() }
  }

  @Test("G7: one that implements neither gives nil and one error line, never an endless recursion")
  func neither() async throws {
    let call = call
    #expect(try await call.configurations(from: Neither()).isEmpty)
    #expect(call.typeWithoutMethod == "Neither")
    #expect(lines.all.count == 1)
    #expect(lines.all.first?.contains("Neither implements neither nextConfiguration() nor") == true)
    #expect(try await Neither().nextConfiguration() == nil)
    #expect(await Neither().generateConfigurations().isEmpty)
  }

  /// Asks two of one type at the same time.
  private struct Pair: VpnConfigurationGenerator {
    let first = OneByOne()
    let second = OneByOne()
    func generateConfigurations() async -> [any VpnConfiguration] {
      async let one = first.generateConfigurations()
      async let other = second.generateConfigurations()
      return await one + other
    }
  }

  @Test("G7: two of one type asked at the same time are not taken for one that goes round in a circle")
  func atTheSameTime() async throws {
    for _ in 0..<200 { #expect(try await call.configurations(from: Pair()).count == 2) }
    #expect(lines.all == [])
  }

  @Test("G7: one that wraps others of either form, of its own type or without a method, is not taken for one without")
  func wrapped() async throws {
    let generator = Chain(parts: [OneByOne(), Chain(parts: [ByBatch(count: 1)]), NeitherToo()])
    let call = call
    let all = try await call.configurations(from: generator) as? [Plain]
    #expect(all?.map(\.number) == [1, 1, 0, 0, 0])
    #expect(call.typeWithoutMethod == "NeitherToo")
  }
}
