import Foundation

/// The rules for values, which hold for those that a program has set as well.
extension KapeSDKSettings {
  package func validate() throws(KapeSDKSettingsError) {
    try check(.appGroupIdentifier, Self.isPathComponent(appGroupIdentifier))
    try check(.keychainService, Self.isPathComponent(keychainService))
    try check(.clientId, Self.isWord(clientId))
    try check(.issuerURL, Self.isHost(issuerURL))
    try check(.redirectURL, Self.isRedirect(redirectURL))
    try check(.keychainAccessGroup, keychainAccessGroup.map(Self.isWord))
    try check(.tenantId, tenantId.map(Self.isWord))
    try check(.apiBaseURL, apiBaseURL.map(Self.isHost))
    try check(.tunnelBundleIdentifier, tunnelBundleIdentifier.map(Self.isPathComponent))
    try check(.trackingURL, trackingURL.map(Self.isHost))
    try check(.caCertificates, caCertificates.allSatisfy { $0.first == 0x30 && $0.count < 1 << 16 })
  }

  private func check(_ key: SettingsKey, _ holds: Bool?) throws(KapeSDKSettingsError) {
    if holds == false { throw .invalidValue(key: key.rawValue) }
  }

  /// It becomes the name of a folder or file: one that cannot lead elsewhere, is not hidden and fits beside a suffix.
  private static func isPathComponent(_ text: String) -> Bool {
    !text.isEmpty && text.utf8.count <= 200 && !text.hasPrefix(".")
      && text.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"):
          true
        default: false
        }
      }
  }

  private static func isWord(_ text: String) -> Bool {
    !text.isEmpty && text.utf8.count <= 1024 && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
  }

  private static func isHost(_ url: URL) -> Bool {
    guard let host = url.host(percentEncoded: false), !host.isEmpty, url.user == nil, url.query == nil,
      url.fragment == nil
    else { return false }
    switch url.scheme?.lowercased() {
    case "https": return true
    case "http": return LoopbackName.contains(host)
    default: return false
    }
  }

  private static func isRedirect(_ url: URL) -> Bool {
    guard let scheme = url.scheme?.lowercased(), !scheme.isEmpty, url.fragment == nil else { return false }
    return scheme == "https" || scheme == "http" ? url.host?.isEmpty == false : true
  }
}

/// Hosts that are this machine.
package enum LoopbackName {
  package static func contains(_ host: String) -> Bool {
    switch host.lowercased() {
    case "localhost", "::1", "[::1]": true
    case let host: isLoopbackAddress(host)
    }
  }

  private static func isLoopbackAddress(_ host: String) -> Bool {
    let parts = host.split(separator: ".", omittingEmptySubsequences: false)
    return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
  }
}
