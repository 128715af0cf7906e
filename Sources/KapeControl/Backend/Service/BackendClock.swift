import Glibc
import Synchronization

/// What the backend calls now. Every expiry, limit and rotation goes by it.
package protocol BackendClock: Sendable {
  /// Milliseconds since 1970, UTC.
  var milliseconds: Int64 { get }
}

extension BackendClock {
  /// Seconds since 1970, as in a JWT's NumericDate.
  package var seconds: Int64 { milliseconds / 1000 }
}

package struct SystemBackendClock: BackendClock {
  package init() {}

  package var milliseconds: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
  }
}

/// For tests: stands still, or goes on from the system's time, and is moved on by hand.
package final class AdjustableBackendClock: BackendClock {
  private let base: @Sendable () -> Int64
  private let advanced = Mutex<Int64>(0)

  /// Stands still at `milliseconds`.
  package init(standingAt milliseconds: Int64) { base = { milliseconds } }

  /// Goes with the system's.
  package init() { base = { SystemBackendClock().milliseconds } }

  package var milliseconds: Int64 { base() + advanced.withLock { $0 } }

  package func advance(seconds: Int64) { advanced.withLock { $0 += seconds * 1000 } }
}
