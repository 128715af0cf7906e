import Foundation
import KapeCore
import Testing

@Suite("§3.3: subscriptions as values") struct SubscriptionModelTests {
  private func subscription(_ id: String, _ status: KapeSubscription.Status, end: Date? = nil) -> KapeSubscription {
    KapeSubscription(id: id, status: status, source: "web", tier: "premium", currentTermEnd: end)
  }

  @Test("a billing period has its payload as count; an unknown unit drops it")
  func billingPeriods() {
    #expect(KapeBillingPeriod(unit: "day", count: 3) == .day(3))
    #expect(KapeBillingPeriod(unit: "week", count: 2) == .week(2))
    #expect(KapeBillingPeriod(unit: "MONTH", count: 6).count == 6)
    #expect(KapeBillingPeriod(unit: "year", count: 1) == .year(1))
    #expect(KapeBillingPeriod(unit: "fortnight", count: 2) == .unknown)
    #expect(KapeBillingPeriod(unit: "fortnight", count: 2).count == nil)
  }

  @Test("active is the first that grants access; the status says whether one does")
  func active() {
    let past = Date(timeIntervalSinceNow: -60)
    let future = Date(timeIntervalSinceNow: 3600)
    let list = [
      subscription("expired", .expired, end: future), subscription("gone", .cancelled, end: past),
      subscription("unlimited?", .cancelled), subscription("held", .suspended), subscription("new", .unknown),
      subscription("cancelled", .cancelled, end: future), subscription("active", .active),
    ]
    #expect(list.active?.id == "cancelled")
    #expect(list.filter(\.isActive).map(\.id) == ["cancelled", "active"])
    #expect(subscription("x", .gracePeriod).isActive)
    #expect([KapeSubscription]().active == nil)
    #expect(list.dropLast(2).map(\.isActive).allSatisfy { !$0 })
  }

  @Test("as the backend writes it, and back, with coders as they are made")
  func coding() throws {
    let text = """
      {"id": "s1", "status": "grace_period", "source": "web", "tier": "free", "current_term_end": "2026-12-01T00:00:00Z",
       "next_billing_at": "2026-12-01T00:00:00.250Z", "cancelled_at": null, "billing_period": {"unit": "month", "count": 1},
       "last_auto_bill_payment_failed": true, "is_business": true, "entitlements": ["xv.vpn", "xv.dip"]}
      """
    let read = try JSONDecoder().decode(KapeSubscription.self, from: Data(text.utf8))
    #expect(read.status == .gracePeriod && read.tier == "free" && read.billingPeriod == .month(1))
    #expect(read.currentTermEnd == Date(timeIntervalSince1970: 1_796_083_200))
    #expect(read.cancelledAt == nil && read.lastAutoBillPaymentFailed && read.isBusiness)
    #expect(read.entitlements == ["xv.vpn", "xv.dip"])
    #expect(try JSONDecoder().decode(KapeSubscription.self, from: JSONEncoder().encode(read)) == read)
    let odd = #"{"id": "s2", "status": "dormant", "billing_period": {"unit": "moon", "count": 2}}"#
    let other = try JSONDecoder().decode(KapeSubscription.self, from: Data(odd.utf8))
    #expect(other.status == .unknown && !other.isActive && other.billingPeriod == .unknown)
    for bad in [#"{"status": "active"}"#, #"{"id": "s", "status": "active", "current_term_end": "soon"}"#] {
      #expect(throws: DecodingError.self) { try JSONDecoder().decode(KapeSubscription.self, from: Data(bad.utf8)) }
    }
  }
}
