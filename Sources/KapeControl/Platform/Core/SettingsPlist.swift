import Foundation
import KapeControl

/// The dictionary of a property list, as settings.
struct SettingsPlist {
  static let sizeLimit = 1 << 20
  private let values: [String: Any]

  init(path: String) throws(KapeSDKSettingsError) {
    var information = stat()
    guard stat(path, &information) == 0 || errno == EACCES else { throw .plistNotFound(name: path) }
    // Opening a pipe would wait for its other end.
    guard information.st_mode & S_IFMT == S_IFREG,
      let bytes = (try? Files.read(path, limit: Self.sizeLimit + 1)) ?? nil, bytes.count <= Self.sizeLimit,
      let list = try? PropertyListSerialization.propertyList(from: Data(bytes), format: nil),
      let values = list as? [String: Any]
    else { throw .invalidPlist(path: path) }
    self.values = values
  }

  func settings() throws(KapeSDKSettingsError) -> KapeSDKSettings {
    let settings = KapeSDKSettings(
      appGroupIdentifier: try required(.appGroupIdentifier, string),
      keychainService: try required(.keychainService, string),
      clientId: try required(.clientId, string),
      issuerURL: try required(.issuerURL, url),
      redirectURL: try required(.redirectURL, url),
      keychainAccessGroup: try string(.keychainAccessGroup),
      tenantId: try string(.tenantId),
      apiBaseURL: try url(.apiBaseURL),
      tunnelBundleIdentifier: try string(.tunnelBundleIdentifier),
      trackingURL: try url(.trackingURL),
      caCertificates: try certificates(.caCertificates))
    try settings.validate()
    return settings
  }

  private func required<Value>(
    _ key: SettingsKey, _ read: (SettingsKey) throws(KapeSDKSettingsError) -> Value?
  ) throws(KapeSDKSettingsError) -> Value {
    guard let value = try read(key) else { throw .missingKey(key.rawValue) }
    return value
  }

  private func string(_ key: SettingsKey) throws(KapeSDKSettingsError) -> String? {
    guard let value = values[key.rawValue] else { return nil }
    guard let text = value as? String else { throw .invalidValue(key: key.rawValue) }
    return text
  }

  private func url(_ key: SettingsKey) throws(KapeSDKSettingsError) -> URL? {
    guard let text = try string(key) else { return nil }
    // Strict: the lenient form would escape what does not belong into a URL.
    guard let url = URL(string: text, encodingInvalidCharacters: false) else { throw .invalidValue(key: key.rawValue) }
    return url
  }

  private func certificates(_ key: SettingsKey) throws(KapeSDKSettingsError) -> [Data] {
    guard let value = values[key.rawValue] else { return [] }
    var certificates: [Data] = []
    for entry in value as? [Any] ?? [value] {
      if let data = entry as? Data {
        certificates.append(data)
      } else if let text = entry as? String, let found = PEMText.certificates(in: text) {
        certificates += found
      } else {
        throw .invalidValue(key: key.rawValue)
      }
    }
    guard !certificates.isEmpty else { throw .invalidValue(key: key.rawValue) }
    return certificates
  }
}
