import KapeProtocols
import Synchronization

/// Measures many places, some at a time: by echo, and by connections where echo is not permitted or not answered.
package final class LatencyMeter: Sendable {
  package struct Options: Sendable {
    /// Round trips to each place, one after the other.
    package var samples = 5
    /// For one.
    package var limit = Duration.seconds(1)
    /// Places at a time.
    package var width = 16

    package init(samples: Int = 5, limit: Duration = .seconds(1), width: Int = 16) {
      self.samples = samples
      self.limit = limit
      self.width = width
    }
  }

  private let probe: any LatencyProbe
  let options: Options
  /// Families for which echo is not permitted: one refusal is enough.
  private let refused = Mutex<Set<IPAddress.Family>>([])

  package init(_ probe: any LatencyProbe, _ options: Options = Options()) {
    self.probe = probe
    self.options = options
  }

  /// nil: no answer at all.
  ///
  /// - Throws: `CancellationError`.
  package func measure(_ target: LatencyTarget) async throws -> LatencyStatistics? {
    var method = refused.withLock { $0.contains(target.address.family) } ? LatencyMethod.connection : .echo
    var samples: [Duration?] = []
    while samples.count < options.samples {
      do {
        samples.append(try await probe.roundTrip(to: target, by: method, within: options.limit))
      } catch is LatencyNotPermitted {
        guard method == .echo else { return nil }
        refused.withLock { _ = $0.insert(target.address.family) }
        method = .connection
      }
      guard samples == [nil, nil] else { continue }
      // Many hosts answer no echo, and what was lost with it says nothing of the way there.
      guard method == .echo else { return nil }
      method = .connection
      samples = []
    }
    return LatencyStatistics(samples)
  }

  /// The statistics of those that answered.
  ///
  /// - Throws: `CancellationError`.
  package func measure(_ targets: [LatencyTarget]) async throws -> [LatencyTarget: LatencyStatistics] {
    var found: [LatencyTarget: LatencyStatistics] = [:]
    try await inParallel(targets, width: options.width, { try await self.measure($0) }, each: { found[$0] = $1 })
    return found
  }
}
