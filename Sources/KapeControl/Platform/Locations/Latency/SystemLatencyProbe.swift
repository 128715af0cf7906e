package import KapeControl
import KapeProtocols

/// Measures with sockets of this process. They take the way that the routing table says.
package struct SystemLatencyProbe: LatencyProbe {
  private let reactor: Reactor

  package init(reactor: Reactor) { self.reactor = reactor }

  package func roundTrip(
    to target: LatencyTarget, by method: LatencyMethod, within limit: Duration
  ) async throws -> Duration? {
    do {
      switch method {
      case .echo: return try await EchoProbe.roundTrip(to: target.address, within: limit, reactor)
      case .connection: return try await ConnectionProbe.roundTrip(to: target, within: limit, reactor)
      }
    } catch is SystemError {
      // No answer in time, or none for another reason.
      try Task.checkCancellation()
      return nil
    }
  }
}
