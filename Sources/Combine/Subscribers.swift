/// The types that go with subscribers.
public enum Subscribers {
  /// How a sequence of values ends.
  @frozen public enum Completion<Failure: Error> {
    case finished
    case failure(Failure)
  }

  /// How many more values a subscriber takes.
  @frozen public struct Demand: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// The number; nil is all there will be.
    public let max: Int?

    private init(_ max: Int?) {
      self.max = max
    }

    /// All there will be.
    public static let unlimited = Demand(nil)
    /// Nothing more than was asked for before.
    public static let none = Demand(0)

    /// That many more; a negative number is none.
    public static func max(_ count: Int) -> Demand {
      Demand(Swift.max(0, count))
    }

    public var description: String {
      max.map { "max(\($0))" } ?? "unlimited"
    }

    /// The sum; one beyond what an `Int` holds is unlimited.
    public static func + (one: Demand, other: Demand) -> Demand {
      guard let one = one.max, let other = other.max else { return .unlimited }
      let (sum, overflow) = one.addingReportingOverflow(other)
      return overflow ? .unlimited : Demand(sum)
    }

    /// The rest, which is never less than none. Unlimited stays so.
    public static func - (one: Demand, other: Demand) -> Demand {
      guard let count = one.max else { return .unlimited }
      guard let taken = other.max else { return .none }
      return Demand(Swift.max(0, count - taken))
    }

    public static func + (one: Demand, other: Int) -> Demand { one + .max(other) }
    public static func - (one: Demand, other: Int) -> Demand { one - .max(other) }
    public static func += (one: inout Demand, other: Demand) { one = one + other }
    public static func += (one: inout Demand, other: Int) { one = one + other }
    public static func -= (one: inout Demand, other: Demand) { one = one - other }
    public static func -= (one: inout Demand, other: Int) { one = one - other }

    public static func < (one: Demand, other: Demand) -> Bool {
      guard let count = one.max else { return false }
      guard let limit = other.max else { return true }
      return count < limit
    }

    public static func > (one: Demand, other: Int) -> Bool { one > .max(other) }
    public static func == (one: Demand, other: Int) -> Bool { one == .max(other) }
  }
}

extension Subscribers.Completion: Equatable where Failure: Equatable {}
extension Subscribers.Completion: Hashable where Failure: Hashable {}
extension Subscribers.Completion: Sendable {}
