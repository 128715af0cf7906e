import KapeProtocols
import Synchronization

/// Measures the way to the servers of a list, for the order in which they are tried. A start waits for it, so it is short,
/// and who has not answered by then counts as not measured.
package struct ServerLatencies: Sendable {
  /// For all of them together.
  package static let limit = Duration.seconds(1)

  private let meter: LatencyMeter
  private let clock: any SessionClock

  package init(_ probe: any LatencyProbe, clock: any SessionClock) {
    meter = LatencyMeter(probe, LatencyMeter.Options(samples: 2, limit: .milliseconds(300), width: 32))
    self.clock = clock
  }

  /// Milliseconds by address. Nothing is measured when there is nothing to choose from.
  ///
  /// - Throws: `CancellationError`.
  package func measure(_ endpoints: [DiscoveredEndpoint]) async throws -> [String: Double] {
    let targets = Self.targets(endpoints)
    guard targets.count > 1 else { return [:] }
    let found = Found()
    let meter = meter
    _ = try await TaskEnvironment(clock: clock).bounded(Self.limit) {
      try await inParallel(
        targets, width: meter.options.width, { try await meter.measure($0) },
        each: { target, statistics in
          if let statistics { found.set("\(target.address)", statistics.medianMs) }
        })
    }
    return found.values
  }

  private static func targets(_ endpoints: [DiscoveredEndpoint]) -> [LatencyTarget] {
    var targets: [LatencyTarget] = []
    for endpoint in endpoints where !targets.contains(where: { $0.address == endpoint.address }) {
      let ports = endpoints.filter { $0.address == endpoint.address }.compactMap(\.connectionPort)
      targets.append(LatencyTarget(endpoint.address, port: ports.first ?? 443))
    }
    return targets
  }

  private final class Found: Sendable {
    private let state = Mutex([String: Double]())
    var values: [String: Double] { state.withLock { $0 } }
    func set(_ address: String, _ milliseconds: Double) { state.withLock { $0[address] = milliseconds } }
  }
}

extension DiscoveredEndpoint {
  /// Where its server takes connections, if it does for this endpoint.
  fileprivate var connectionPort: UInt16? {
    if case .wireGuard(let endpoint) = self, endpoint.authAddress == endpoint.address { return endpoint.authPort }
    return isTCP ? port : nil
  }
}
