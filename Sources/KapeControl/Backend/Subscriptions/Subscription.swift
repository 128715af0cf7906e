import KapeControl

/// What a user pays for, or not.
struct Subscription: Sendable {
  var id: String
  /// As it was entered; time goes over it.
  var recorded: SubscriptionStatus
  var source: String
  var tier: String
  var currentTermEnd: Int64?
  var nextBillingAt: Int64?
  var cancelledAt: Int64?
  var billing: BillingPeriod?
  var lastAutoBillPaymentFailed: Bool
  var isBusiness: Bool
  var entitlements: [String]

  /// A term that has ended ends the subscription, but for the grace that a user has to pay.
  func status(at now: Int64) -> SubscriptionStatus {
    switch recorded {
    case .active, .cancelled: currentTermEnd.map { $0 <= now } ?? (recorded == .cancelled) ? .expired : recorded
    case .gracePeriod, .expired, .suspended: recorded
    }
  }

  func grantsAccess(at now: Int64) -> Bool {
    switch status(at: now) {
    case .active, .gracePeriod, .cancelled: true
    case .expired, .suspended: false
    }
  }

  /// What comes of it is good no longer than this.
  func end(noLaterThan other: Int64) -> Int64 {
    recorded == .gracePeriod ? other : min(other, currentTermEnd ?? other)
  }

  func json(at now: Int64) -> JSON {
    [
      "id": .string(id), "status": .string(status(at: now).rawValue), "source": .string(source), "tier": .string(tier),
      "current_term_end": .time(currentTermEnd), "next_billing_at": .time(nextBillingAt),
      "cancelled_at": .time(cancelledAt),
      "billing_period": billing.map { ["unit": .string($0.unit), "count": .integer($0.count)] } ?? .null,
      "last_auto_bill_payment_failed": .bool(lastAutoBillPaymentFailed), "is_business": .bool(isBusiness),
      "entitlements": .strings(entitlements),
    ]
  }
}

extension JSON {
  /// RFC 3339, of seconds since 1970.
  static func time(_ seconds: Int64?) -> JSON {
    guard let seconds else { return .null }
    let text = Timestamp.text(UInt64(max(0, seconds)) * 1_000_000_000)
    return .string(text.replacing(".000Z", with: "Z"))
  }
}
