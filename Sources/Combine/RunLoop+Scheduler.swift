public import Foundation

/// A loop gives what is scheduled while its thread runs it; a program whose main thread waits in `dispatchMain()` or in an
/// asynchronous `main` does not run `RunLoop.main`, and uses `DispatchQueue.main`.
extension RunLoop: Scheduler {
  /// A moment of the run loop's clock.
  public struct SchedulerTimeType: Strideable, Hashable, Sendable {
    public var date: Date

    public init(_ date: Date) { self.date = date }

    public func distance(to other: Self) -> SecondsStride { SecondsStride(other.date.timeIntervalSince(date)) }
    public func advanced(by stride: SecondsStride) -> Self { Self(date.addingTimeInterval(stride.timeInterval)) }
  }

  /// A run loop is told nothing beside.
  public struct SchedulerOptions {}

  public var now: SchedulerTimeType { SchedulerTimeType(Date()) }
  public var minimumTolerance: SecondsStride { 0 }

  // A timer that is due wakes the loop from any thread; a block given to it would wait for something else to do so.
  public func schedule(options: SchedulerOptions?, _ action: @escaping () -> Void) {
    start(at: Date(), every: nil, action)
  }

  public func schedule(
    after date: SchedulerTimeType, tolerance: SecondsStride, options: SchedulerOptions?, _ action: @escaping () -> Void
  ) {
    start(at: date.date, every: nil, action)
  }

  public func schedule(
    after date: SchedulerTimeType, interval: SecondsStride, tolerance: SecondsStride, options: SchedulerOptions?,
    _ action: @escaping () -> Void
  ) -> any Cancellable {
    let timer = start(at: date.date, every: interval.timeInterval, action)
    return AnyCancellable { timer.invalidate() }
  }

  @discardableResult private func start(at date: Date, every interval: Double?, _ action: @escaping () -> Void) -> Timer
  {
    let action = Carried(value: action)
    let timer = Timer(fire: date, interval: interval ?? 0, repeats: interval != nil) { _ in action.value() }
    add(timer, forMode: .common)
    return timer
  }
}
