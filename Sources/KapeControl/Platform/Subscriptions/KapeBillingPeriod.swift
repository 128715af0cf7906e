/// How long a term lasts.
public enum KapeBillingPeriod: Hashable, Sendable {
  case day(Int)
  case week(Int)
  case month(Int)
  case year(Int)
  case unknown

  /// By the name of its unit: `day`, `week`, `month` or `year`. Another one becomes `unknown`, and its count is dropped.
  public init(unit: String, count: Int) {
    switch unit.lowercased() {
    case "day": self = .day(count)
    case "week": self = .week(count)
    case "month": self = .month(count)
    case "year": self = .year(count)
    default: self = .unknown
    }
  }

  /// How many of its units; nil when it is unknown.
  public var count: Int? {
    switch self {
    case .day(let count), .week(let count), .month(let count), .year(let count): count
    case .unknown: nil
    }
  }

  private var unit: String {
    switch self {
    case .day: "day"
    case .week: "week"
    case .month: "month"
    case .year: "year"
    case .unknown: "unknown"
    }
  }
}

extension KapeBillingPeriod: Codable {
  private enum CodingKeys: String, CodingKey { case unit, count }

  /// `{"unit": "month", "count": 1}`, as the backend writes it.
  public init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    self.init(
      unit: try values.decode(String.self, forKey: .unit),
      count: try values.decodeIfPresent(Int.self, forKey: .count) ?? 0)
  }

  public func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: CodingKeys.self)
    try values.encode(unit, forKey: .unit)
    try values.encodeIfPresent(count, forKey: .count)
  }
}
