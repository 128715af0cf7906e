public import Foundation

public enum KapeSubscriptionError: Error, Equatable, Sendable {
  /// No subscription that grants access has what the product asks for.
  case noMatchingSubscription
  /// Nothing was activated yet in this session.
  case notActivated
}

extension KapeSubscriptionError: LocalizedError, CustomStringConvertible {
  public var description: String {
    switch self {
    case .noMatchingSubscription:
      "no active subscription of this account has an entitlement of the product: subscribe, or sign in to the account "
        + "that has one; TenantId in the settings says whose entitlement the VPN's is"
    case .notActivated:
      "nothing is activated in this session: call activateSubscription(for:) after signing in, and before connecting"
    }
  }

  public var errorDescription: String? { description }
}
