import Foundation

/// As the backend writes it: snake case, times of RFC 3339, whatever the coder makes of dates otherwise.
extension KapeSubscription: Codable {
  private enum CodingKeys: String, CodingKey {
    case id, status, source, tier, entitlements
    case currentTermEnd = "current_term_end"
    case nextBillingAt = "next_billing_at"
    case cancelledAt = "cancelled_at"
    case billingPeriod = "billing_period"
    case lastAutoBillPaymentFailed = "last_auto_bill_payment_failed"
    case isBusiness = "is_business"
  }

  public init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    func date(_ key: CodingKeys) throws -> Date? {
      guard let text = try values.decodeIfPresent(String.self, forKey: key) else { return nil }
      guard let date = Date(rfc3339: text) else {
        throw DecodingError.dataCorruptedError(forKey: key, in: values, debugDescription: "not a time of RFC 3339")
      }
      return date
    }
    self.init(
      id: try values.decode(String.self, forKey: .id),
      status: Status(rawValue: try values.decode(String.self, forKey: .status)) ?? .unknown,
      source: try values.decodeIfPresent(String.self, forKey: .source) ?? "",
      tier: try values.decodeIfPresent(String.self, forKey: .tier) ?? "",
      currentTermEnd: try date(.currentTermEnd),
      nextBillingAt: try date(.nextBillingAt),
      cancelledAt: try date(.cancelledAt),
      billingPeriod: try values.decodeIfPresent(KapeBillingPeriod.self, forKey: .billingPeriod) ?? .unknown,
      lastAutoBillPaymentFailed: try values.decodeIfPresent(Bool.self, forKey: .lastAutoBillPaymentFailed) ?? false,
      isBusiness: try values.decodeIfPresent(Bool.self, forKey: .isBusiness) ?? false,
      entitlements: try values.decodeIfPresent([String].self, forKey: .entitlements) ?? [])
  }

  public func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: CodingKeys.self)
    try values.encode(id, forKey: .id)
    try values.encode(status, forKey: .status)
    try values.encode(source, forKey: .source)
    try values.encode(tier, forKey: .tier)
    try values.encode(currentTermEnd?.rfc3339, forKey: .currentTermEnd)
    try values.encode(nextBillingAt?.rfc3339, forKey: .nextBillingAt)
    try values.encode(cancelledAt?.rfc3339, forKey: .cancelledAt)
    try values.encode(billingPeriod, forKey: .billingPeriod)
    try values.encode(lastAutoBillPaymentFailed, forKey: .lastAutoBillPaymentFailed)
    try values.encode(isBusiness, forKey: .isBusiness)
    try values.encode(entitlements, forKey: .entitlements)
  }
}

extension Date {
  /// A time of RFC 3339, with or without a fraction of the second.
  package init?(rfc3339 text: String) {
    let styles = [Date.ISO8601FormatStyle(), Date.ISO8601FormatStyle(includingFractionalSeconds: true)]
    guard let date = styles.lazy.compactMap({ try? $0.parse(text) }).first else { return nil }
    self = date
  }

  /// To the millisecond, in UTC.
  package var rfc3339: String { Date.ISO8601FormatStyle(includingFractionalSeconds: true).format(self) }
}
