/// How good a connection to a location promises to be. The better one is the greater.
public enum KapeLocationRating: String, Codable, CaseIterable, Sendable {
  case excellent
  case good
  case ok
  case degraded
  case poor
  /// Nothing was measured there.
  case unknown
}

extension KapeLocationRating: Comparable {
  private var rank: Int {
    switch self {
    case .excellent: 5
    case .good: 4
    case .ok: 3
    case .degraded: 2
    case .poor: 1
    case .unknown: 0
    }
  }

  public static func < (one: Self, other: Self) -> Bool { one.rank < other.rank }
}
