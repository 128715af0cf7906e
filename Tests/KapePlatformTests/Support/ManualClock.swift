import Foundation
import KapePlatform
import Synchronization

/// A clock that stands still until a test moves it.
final class ManualClock: SessionClock {
  private struct Timer {
    let due: Duration
    let action: @Sendable () -> Void
  }

  private struct State {
    var now = Duration.zero
    var timers: [UInt64: Timer] = [:]
    var order: UInt64 = 0
  }

  static let start = Date(timeIntervalSince1970: 1_800_000_000)
  private let state = Mutex(State())

  var now: Duration { state.withLock { $0.now } }
  var wallTime: Date { Self.start + now / .seconds(1) }
  var timerCount: Int { state.withLock { $0.timers.count } }

  func schedule(after delay: Duration, _ action: @escaping @Sendable () -> Void) -> SessionTimer {
    let order = state.withLock { state in
      state.order += 1
      state.timers[state.order] = Timer(due: state.now + max(.zero, delay), action: action)
      return state.order
    }
    return SessionTimer { [weak self] in self?.state.withLock { _ = $0.timers.removeValue(forKey: order) } }
  }

  /// Moves it, and fires what is due on the way, in order.
  func advance(by duration: Duration) {
    let end = now + duration
    while let action = state.withLock({ state -> (@Sendable () -> Void)? in
      let due = state.timers.filter { $0.value.due <= end }
      guard let next = due.min(by: { ($0.value.due, $0.key) < ($1.value.due, $1.key) }) else { return nil }
      state.timers[next.key] = nil
      state.now = max(state.now, next.value.due)
      return next.value.action
    }) {
      action()
    }
    state.withLock { $0.now = end }
  }
}

/// Waits until it holds; false when it does not after a time that only a fault takes.
func eventually(_ holds: () async throws -> Bool) async rethrows -> Bool {
  let end = ContinuousClock.now + .seconds(30)
  while ContinuousClock.now < end {
    if try await holds() { return true }
    try? await Task.sleep(for: .milliseconds(2))
  }
  return try await holds()
}

/// Gives what is under way the time to do what it must not do.
func settle() async { try? await Task.sleep(for: .milliseconds(60)) }
