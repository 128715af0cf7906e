public import Foundation

extension OperationQueue: Scheduler {
  public typealias SchedulerTimeType = RunLoop.SchedulerTimeType

  /// A queue of operations is told nothing beside.
  public struct SchedulerOptions {}

  public var now: SchedulerTimeType { SchedulerTimeType(Date()) }
  public var minimumTolerance: SecondsStride { 0 }

  public func schedule(options: SchedulerOptions?, _ action: @escaping () -> Void) {
    let action = Carried(value: action)
    addOperation { action.value() }
  }

  public func schedule(
    after date: SchedulerTimeType, tolerance: SecondsStride, options: SchedulerOptions?, _ action: @escaping () -> Void
  ) {
    let action = Carried(value: action)
    let timer = DispatchQueue.global()
    timer.asyncAfter(deadline: .now() + date.date.timeIntervalSinceNow) { self.addOperation { action.value() } }
  }

  public func schedule(
    after date: SchedulerTimeType, interval: SecondsStride, tolerance: SecondsStride, options: SchedulerOptions?,
    _ action: @escaping () -> Void
  ) -> any Cancellable {
    let timer = DispatchQueue.global()
    return timer.schedule(
      after: DispatchQueue.SchedulerTimeType(.now() + date.date.timeIntervalSinceNow),
      interval: .seconds(interval.timeInterval)
    ) { self.schedule(options: options, action) }
  }
}
