public import Foundation

/// What somebody has bought, or been given.
public struct KapeSubscription: Identifiable, Hashable, Sendable {
  public enum Status: String, Codable, Hashable, Sendable, CaseIterable {
    case active
    /// The last payment has failed; access goes on for a while.
    case gracePeriod = "grace_period"
    case expired
    /// It will not be renewed; access goes on until the end of the term.
    case cancelled
    case suspended
    /// One that this version does not know. It grants no access.
    case unknown
  }

  public var id: String
  public var status: Status
  /// Where it was bought, such as `web`.
  public var source: String
  /// Such as `free` or `premium`.
  public var tier: String
  /// nil: without end.
  public var currentTermEnd: Date?
  /// nil: it is not billed.
  public var nextBillingAt: Date?
  /// nil: it is not cancelled.
  public var cancelledAt: Date?
  public var billingPeriod: KapeBillingPeriod
  /// Whether the last automatic renewal failed.
  public var lastAutoBillPaymentFailed: Bool
  /// A business account's: managing it is restricted.
  public var isBusiness: Bool
  /// What it gives access to, such as `example.vpn`.
  public var entitlements: [String]

  public init(
    id: String, status: Status, source: String, tier: String, currentTermEnd: Date? = nil, nextBillingAt: Date? = nil,
    cancelledAt: Date? = nil, billingPeriod: KapeBillingPeriod = .unknown, lastAutoBillPaymentFailed: Bool = false,
    isBusiness: Bool = false, entitlements: [String] = []
  ) {
    self.id = id
    self.status = status
    self.source = source
    self.tier = tier
    self.currentTermEnd = currentTermEnd
    self.nextBillingAt = nextBillingAt
    self.cancelledAt = cancelledAt
    self.billingPeriod = billingPeriod
    self.lastAutoBillPaymentFailed = lastAutoBillPaymentFailed
    self.isBusiness = isBusiness
    self.entitlements = entitlements
  }

  /// Whether it grants access now.
  public var isActive: Bool { isActive(at: Date()) }

  package func isActive(at now: Date) -> Bool {
    switch status {
    case .active, .gracePeriod: true
    case .cancelled: currentTermEnd.map { now < $0 } ?? false
    case .expired, .suspended, .unknown: false
    }
  }
}

extension Array where Element == KapeSubscription {
  /// The first that grants access now.
  public var active: KapeSubscription? { first(where: \.isActive) }

  /// The first that grants access and carries one of these entitlements.
  package func first(withAnyOf entitlements: [String], at now: Date) -> KapeSubscription? {
    let wanted = Set(entitlements)
    return first { $0.isActive(at: now) && !wanted.isDisjoint(with: $0.entitlements) }
  }
}
