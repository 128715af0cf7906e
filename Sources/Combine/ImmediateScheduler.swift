/// Runs everything at once, where it is called; it has one moment only.
public struct ImmediateScheduler: Scheduler, Sendable {
  public typealias SchedulerOptions = Never

  public static let shared = ImmediateScheduler()

  /// The one moment.
  public struct SchedulerTimeType: Strideable, Sendable {
    public func distance(to other: Self) -> SecondsStride { 0 }
    public func advanced(by stride: SecondsStride) -> Self { self }
  }

  public var now: SchedulerTimeType { SchedulerTimeType() }
  public var minimumTolerance: SecondsStride { 0 }

  public func schedule(options: Never?, _ action: @escaping () -> Void) {
    action()
  }

  public func schedule(
    after date: SchedulerTimeType, tolerance: SecondsStride, options: Never?, _ action: @escaping () -> Void
  ) {
    action()
  }

  public func schedule(
    after date: SchedulerTimeType, interval: SecondsStride, tolerance: SecondsStride, options: Never?,
    _ action: @escaping () -> Void
  ) -> any Cancellable {
    action()
    return AnyCancellable {}
  }
}
