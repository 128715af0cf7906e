/// What a subscription has to be for.
public enum KapeProductType: Hashable, Sendable {
  /// The VPN: the entitlement `<tenant>.vpn`.
  case vpn
  /// Any of these entitlements.
  case custom(values: [String])

  /// The entitlements of which one is enough.
  ///
  /// - Throws: `missingKey("TenantId")`, for the VPN of settings without a tenant.
  package func entitlements(_ settings: KapeSDKSettings) throws(KapeSDKSettingsError) -> [String] {
    switch self {
    case .vpn: [try settings.require(\.tenantId, .tenantId) + ".vpn"]
    case .custom(let values): values
    }
  }
}
