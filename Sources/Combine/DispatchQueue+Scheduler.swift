public import Dispatch

extension DispatchQueue: Scheduler {
  /// A moment of the queue's clock.
  public struct SchedulerTimeType: Strideable, Hashable, Sendable {
    public var dispatchTime: DispatchTime

    public init(_ time: DispatchTime) { dispatchTime = time }

    public func distance(to other: Self) -> Stride {
      let (here, there) = (dispatchTime.uptimeNanoseconds, other.dispatchTime.uptimeNanoseconds)
      return here <= there
        ? Stride(nanoseconds: Int(clamping: there - here)) : Stride(nanoseconds: -Int(clamping: here - there))
    }

    public func advanced(by stride: Stride) -> Self {
      Self(dispatchTime + .nanoseconds(stride.nanoseconds))
    }

    public func hash(into hasher: inout Hasher) { hasher.combine(dispatchTime.rawValue) }

    /// A length of time in nanoseconds.
    public struct Stride: SignedNumeric, Comparable, Hashable, Sendable, SchedulerTimeIntervalConvertible {
      var nanoseconds: Int

      init(nanoseconds: Int) { self.nanoseconds = nanoseconds }
      public init(integerLiteral seconds: Int) { self = .seconds(seconds) }
      public init?(exactly source: some BinaryInteger) {
        guard let seconds = Int(exactly: source) else { return nil }
        self = .seconds(seconds)
      }

      public var magnitude: Int { Int(clamping: nanoseconds.magnitude) }
      public var timeInterval: DispatchTimeInterval { .nanoseconds(nanoseconds) }

      public static func seconds(_ count: Int) -> Self { scaled(count, 1_000_000_000) }
      public static func seconds(_ count: Double) -> Self {
        let limit = Double(Int64.max / 2)
        return Self(nanoseconds: Int(max(-limit, min(limit, (count * 1e9).isNaN ? 0 : count * 1e9))))
      }
      public static func milliseconds(_ count: Int) -> Self { scaled(count, 1_000_000) }
      public static func microseconds(_ count: Int) -> Self { scaled(count, 1000) }
      public static func nanoseconds(_ count: Int) -> Self { Self(nanoseconds: count) }

      private static func scaled(_ count: Int, _ factor: Int) -> Self {
        clamped(count.multipliedReportingOverflow(by: factor), negative: (count < 0) != (factor < 0))
      }

      private static func clamped(_ result: (partialValue: Int, overflow: Bool), negative: Bool) -> Self {
        Self(nanoseconds: result.overflow ? (negative ? .min : .max) : result.partialValue)
      }

      public static func < (one: Self, other: Self) -> Bool { one.nanoseconds < other.nanoseconds }
      public static func + (one: Self, other: Self) -> Self {
        clamped(one.nanoseconds.addingReportingOverflow(other.nanoseconds), negative: one.nanoseconds < 0)
      }
      public static func - (one: Self, other: Self) -> Self {
        clamped(one.nanoseconds.subtractingReportingOverflow(other.nanoseconds), negative: one.nanoseconds < 0)
      }
      public static func * (one: Self, other: Self) -> Self { scaled(one.nanoseconds, other.nanoseconds) }
      public static func *= (one: inout Self, other: Self) { one = one * other }
    }
  }

  /// What the queue is told beside.
  public struct SchedulerOptions {
    public var qos: DispatchQoS
    public var flags: DispatchWorkItemFlags
    public var group: DispatchGroup?

    public init(qos: DispatchQoS = .unspecified, flags: DispatchWorkItemFlags = [], group: DispatchGroup? = nil) {
      self.qos = qos
      self.flags = flags
      self.group = group
    }
  }

  public var now: SchedulerTimeType { SchedulerTimeType(.now()) }
  public var minimumTolerance: SchedulerTimeType.Stride { .nanoseconds(0) }

  public func schedule(options: SchedulerOptions?, _ action: @escaping () -> Void) {
    let action = Carried(value: action)
    async(group: options?.group, qos: options?.qos ?? .unspecified, flags: options?.flags ?? []) { action.value() }
  }

  public func schedule(
    after date: SchedulerTimeType, tolerance: SchedulerTimeType.Stride, options: SchedulerOptions?,
    _ action: @escaping () -> Void
  ) {
    let action = Carried(value: action)
    asyncAfter(
      deadline: date.dispatchTime, qos: options?.qos ?? .unspecified, flags: options?.flags ?? []
    ) { action.value() }
  }

  public func schedule(
    after date: SchedulerTimeType, interval: SchedulerTimeType.Stride, tolerance: SchedulerTimeType.Stride,
    options: SchedulerOptions?, _ action: @escaping () -> Void
  ) -> any Cancellable {
    let timer = DispatchSource.makeTimerSource(queue: self)
    let action = Carried(value: action)
    timer.schedule(
      deadline: date.dispatchTime, repeating: interval.timeInterval,
      leeway: .nanoseconds(max(0, tolerance.nanoseconds)))
    timer.setEventHandler { action.value() }
    timer.resume()
    return AnyCancellable { timer.cancel() }
  }
}
