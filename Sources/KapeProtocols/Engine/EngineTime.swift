internal import CKapeDataPlane

#if canImport(Glibc)
  internal import Glibc
#endif

/// The time that is handed to an engine, which reads no clock itself.
public struct EngineTime: Hashable, Sendable {
  /// Nanoseconds of a clock that goes on during suspend (CLOCK_BOOTTIME). Drives every timer; never goes back.
  public var boot: UInt64
  /// Nanoseconds since 1970. Serves only what carries it on the wire; may jump.
  public var wall: UInt64

  public init(boot: UInt64, wall: UInt64) {
    self.boot = boot
    self.wall = wall
  }

  #if canImport(Glibc)
    /// Both clocks, now.
    public static func now() -> EngineTime {
      EngineTime(boot: read(CLOCK_BOOTTIME), wall: read(CLOCK_REALTIME))
    }

    private static func read(_ clock: clockid_t) -> UInt64 {
      var time = timespec()
      clock_gettime(clock, &time)
      return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }
  #endif

  /// Later by so many nanoseconds, on both clocks.
  public func advanced(by nanoseconds: UInt64) -> EngineTime {
    EngineTime(boot: boot + nanoseconds, wall: wall + nanoseconds)
  }

  var dataPlane: kdp_now { kdp_now(boot: boot, wall: wall) }
}
