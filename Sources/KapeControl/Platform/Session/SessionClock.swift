package import Foundation
import Synchronization

/// Time as a session sees it. Tests give one that they move themselves.
package protocol SessionClock: Sendable {
  /// Since some moment in the past; goes on while the machine sleeps.
  var now: Duration { get }
  /// The time of day, for what people were promised.
  var wallTime: Date { get }
  /// Runs `action` once, after that time, unless the timer is cancelled first.
  func schedule(after delay: Duration, _ action: @escaping @Sendable () -> Void) -> SessionTimer
}

/// What `SessionClock.schedule` gives.
package struct SessionTimer: Sendable {
  private let stop: @Sendable () -> Void

  package init(_ stop: @escaping @Sendable () -> Void) { self.stop = stop }

  /// Without effect once the action has run.
  package func cancel() { stop() }
}

/// The machine's clocks.
package struct SystemSessionClock: SessionClock {
  private static let origin = ContinuousClock.now

  package init() {}

  package var now: Duration { Self.origin.duration(to: .now) }
  package var wallTime: Date { Date() }

  package func schedule(after delay: Duration, _ action: @escaping @Sendable () -> Void) -> SessionTimer {
    let task = Task {
      do { try await Task.sleep(for: delay, clock: .continuous) } catch { return }
      action()
    }
    return SessionTimer { task.cancel() }
  }
}
