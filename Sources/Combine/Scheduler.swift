/// Says when and where something runs.
public protocol Scheduler<SchedulerTimeType> {
  /// A moment of this scheduler's clock.
  associatedtype SchedulerTimeType: Strideable where SchedulerTimeType.Stride: SchedulerTimeIntervalConvertible
  /// What this scheduler can be told beside.
  associatedtype SchedulerOptions

  var now: SchedulerTimeType { get }
  /// How far beside the given moment it may be.
  var minimumTolerance: SchedulerTimeType.Stride { get }

  /// Runs it as soon as can be.
  func schedule(options: SchedulerOptions?, _ action: @escaping () -> Void)
  /// Runs it after the moment.
  func schedule(
    after date: SchedulerTimeType, tolerance: SchedulerTimeType.Stride, options: SchedulerOptions?,
    _ action: @escaping () -> Void)
  /// Runs it after the moment and again after each interval, until the result is cancelled.
  func schedule(
    after date: SchedulerTimeType, interval: SchedulerTimeType.Stride, tolerance: SchedulerTimeType.Stride,
    options: SchedulerOptions?, _ action: @escaping () -> Void
  ) -> any Cancellable
}

extension Scheduler {
  public func schedule(_ action: @escaping () -> Void) {
    schedule(options: nil, action)
  }

  public func schedule(after date: SchedulerTimeType, _ action: @escaping () -> Void) {
    schedule(after: date, tolerance: minimumTolerance, options: nil, action)
  }

  public func schedule(
    after date: SchedulerTimeType, interval: SchedulerTimeType.Stride, _ action: @escaping () -> Void
  ) -> any Cancellable {
    schedule(after: date, interval: interval, tolerance: minimumTolerance, options: nil, action)
  }
}

/// A length of time that can be made from any unit.
public protocol SchedulerTimeIntervalConvertible {
  static func seconds(_ count: Int) -> Self
  static func seconds(_ count: Double) -> Self
  static func milliseconds(_ count: Int) -> Self
  static func microseconds(_ count: Int) -> Self
  static func nanoseconds(_ count: Int) -> Self
}

/// A length of time in seconds, for the clocks that count so.
public struct SecondsStride: SignedNumeric, Comparable, Hashable, Sendable, SchedulerTimeIntervalConvertible,
  ExpressibleByFloatLiteral
{
  public var timeInterval: Double
  public var magnitude: Double { abs(timeInterval) }

  public init(_ timeInterval: Double) { self.timeInterval = timeInterval }
  public init(integerLiteral value: Int) { self.init(Double(value)) }
  public init(floatLiteral value: Double) { self.init(value) }
  public init?(exactly source: some BinaryInteger) {
    guard let seconds = Double(exactly: source) else { return nil }
    self.init(seconds)
  }

  public static func seconds(_ count: Int) -> SecondsStride { SecondsStride(Double(count)) }
  public static func seconds(_ count: Double) -> SecondsStride { SecondsStride(count) }
  public static func milliseconds(_ count: Int) -> SecondsStride { SecondsStride(Double(count) / 1e3) }
  public static func microseconds(_ count: Int) -> SecondsStride { SecondsStride(Double(count) / 1e6) }
  public static func nanoseconds(_ count: Int) -> SecondsStride { SecondsStride(Double(count) / 1e9) }

  public static func < (one: Self, other: Self) -> Bool { one.timeInterval < other.timeInterval }
  public static func + (one: Self, other: Self) -> Self { Self(one.timeInterval + other.timeInterval) }
  public static func - (one: Self, other: Self) -> Self { Self(one.timeInterval - other.timeInterval) }
  public static func * (one: Self, other: Self) -> Self { Self(one.timeInterval * other.timeInterval) }
  public static func *= (one: inout Self, other: Self) { one = one * other }
}
