import Foundation

/// The keys of the settings' property list. The first five are required; each of the others is asked for by name where
/// it is used.
package enum SettingsKey: String, CaseIterable, Sendable {
  case appGroupIdentifier = "AppGroupIdentifier"
  case keychainService = "KeychainService"
  case clientId = "ClientId"
  case issuerURL = "IssuerURL"
  case redirectURL = "RedirectURL"
  case keychainAccessGroup = "KeychainAccessGroup"
  case tenantId = "TenantId"
  case apiBaseURL = "APIBaseURL"
  case tunnelBundleIdentifier = "TunnelBundleIdentifier"
  case trackingURL = "TrackingURL"
  case caCertificates = "CACertificates"

  /// What its value has to be, for people.
  var form: String {
    switch self {
    case .appGroupIdentifier, .keychainService, .tunnelBundleIdentifier:
      "a string of at most 200 letters, digits, '.', '_' and '-' that does not begin with '.'"
    case .clientId, .keychainAccessGroup, .tenantId:
      "a string that is not empty, without white space or control characters"
    case .issuerURL:
      "an https URL without query and fragment (http only for a loopback address)"
    case .redirectURL:
      "an absolute URL without fragment, such as com.example.app:/callback or http://127.0.0.1/callback"
    case .apiBaseURL, .trackingURL:
      "an https URL without query and fragment (http only for a loopback address)"
    case .caCertificates:
      "one or more certificates: a string of PEM, the DER data, or an array of these"
    }
  }

  /// For a key that may be none of ours.
  static func form(of key: String) -> String {
    SettingsKey(rawValue: key)?.form ?? "the documentation says"
  }
}
