import Foundation
import Synchronization

/// Reports attempts that are over, with the time that they took.
package protocol PastAttemptReporter: AttemptReporter {
  func attemptDidHappen(
    configuration: any VpnConfiguration, result: PacketTunnelAttemptResult, elapsed: Duration,
    endpoint: PacketTunnelConnectedEndpoint?)
}

/// What one controller reports to. Silent once the session has given a call of that controller up, until it has
/// returned: whatever it still says belongs to no connection any more.
final class SlotReporter: PastAttemptReporter {
  private let analytics: SessionAnalytics
  private struct State {
    var isMuted = false
    var open: Set<UUID> = []
  }
  private let state = Mutex(State())

  init(_ analytics: SessionAnalytics) { self.analytics = analytics }

  func attemptDidBegin(configuration: any VpnConfiguration) -> UUID {
    state.withLock { state in
      guard !state.isMuted else { return UUID() }
      let id = analytics.attemptDidBegin(configuration: configuration)
      state.open.insert(id)
      return id
    }
  }

  func attemptDidEnd(_ id: UUID, result: PacketTunnelAttemptResult, endpoint: PacketTunnelConnectedEndpoint?) {
    state.withLock { state in
      guard state.open.remove(id) != nil else { return }
      analytics.attemptDidEnd(id, result: result, endpoint: endpoint)
    }
  }

  func attemptDidHappen(
    configuration: any VpnConfiguration, result: PacketTunnelAttemptResult, elapsed: Duration,
    endpoint: PacketTunnelConnectedEndpoint?
  ) {
    state.withLock { state in
      guard !state.isMuted else { return }
      analytics.attemptDidHappen(configuration: configuration, result: result, elapsed: elapsed, endpoint: endpoint)
    }
  }

  /// Ends what is open as `result`, and goes silent.
  func mute(_ result: PacketTunnelAttemptResult) {
    state.withLock { state in
      state.isMuted = true
      for id in state.open { analytics.attemptDidEnd(id, result: result, endpoint: nil) }
      state.open = []
    }
  }

  func unmute() { state.withLock { $0.isMuted = false } }
}
