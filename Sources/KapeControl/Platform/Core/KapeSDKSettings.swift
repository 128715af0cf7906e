public import Foundation

/// What an app and its tunnel process have to agree on: the group whose folder they share, where the session is kept, and
/// the hosts. It is read from a property list; a value may be changed until a handle is made of it.
public struct KapeSDKSettings: Equatable, Sendable {
  /// The name, without `.plist`, of the property list that is read when no other is asked for: `KapeSDK`.
  public static let defaultPlistName = "KapeSDK"

  /// Names the folder that app and tunnel share, and the suite of user defaults. The same in both, and in every
  /// environment.
  public var appGroupIdentifier: String
  /// Names the place of the session. One for each environment, so that a session is never sent to another one.
  public var keychainService: String
  /// The OIDC client.
  public var clientId: String
  /// The OIDC issuer, at which discovery begins.
  public var issuerURL: URL
  /// Where the browser is sent after signing in: a loopback address for the listener of this process (RFC 8252, section
  /// 7.3; without a port a free one is taken), anything else for `KapeAuthClient.handleCallbackURL`.
  public var redirectURL: URL
  /// Has no effect on Linux, where the session belongs to the user.
  public var keychainAccessGroup: String?
  /// The brand. Its entitlement to the VPN is `<tenant>.vpn`.
  public var tenantId: String?
  /// Where the backend's paths begin.
  public var apiBaseURL: URL?
  /// Names the tunnel's program.
  public var tunnelBundleIdentifier: String?
  /// Where events are posted. Without it none is.
  public var trackingURL: URL?
  /// Certificates (DER) that are trusted in place of the system's. Empty: the system's.
  public var caCertificates: [Data]

  /// Reads `plistName`.plist. For the main bundle that is the first of: the bundle itself, the folder that
  /// KAPE_PLIST_DIR names, `*.resources` beside the executable, `../share/NAME/` from there, and `/etc/NAME/`, with NAME
  /// the executable's. Another bundle is asked alone.
  ///
  /// What other processes have written to the group's user defaults is seen afterwards, and what this one has is on the
  /// disk.
  ///
  /// - Throws: `KapeSDKSettingsError`.
  public init(bundle: Bundle = .main, plistName: String = KapeSDKSettings.defaultPlistName) throws {
    guard let path = PlistSearch.ofThisProcess.find(plistName, in: bundle) else {
      throw KapeSDKSettingsError.plistNotFound(name: plistName)
    }
    try self.init(contentsOf: URL(fileURLWithPath: path))
  }

  /// Reads this property list.
  ///
  /// - Throws: `KapeSDKSettingsError`, `plistNotFound` with the file's path when it is not there.
  public init(contentsOf file: URL) throws {
    do {
      self = try SettingsPlist(path: file.path).settings()
    } catch {
      KapeLogger(subsystem: "KapeCore", category: "settings").error("\(file.path): \(error)")
      throw error
    }
    SharedDefaults.synchronize(appGroupIdentifier)
  }

  package init(
    appGroupIdentifier: String, keychainService: String, clientId: String, issuerURL: URL, redirectURL: URL,
    keychainAccessGroup: String? = nil, tenantId: String? = nil, apiBaseURL: URL? = nil,
    tunnelBundleIdentifier: String? = nil, trackingURL: URL? = nil, caCertificates: [Data] = []
  ) {
    self.appGroupIdentifier = appGroupIdentifier
    self.keychainService = keychainService
    self.clientId = clientId
    self.issuerURL = issuerURL
    self.redirectURL = redirectURL
    self.keychainAccessGroup = keychainAccessGroup
    self.tenantId = tenantId
    self.apiBaseURL = apiBaseURL
    self.tunnelBundleIdentifier = tunnelBundleIdentifier
    self.trackingURL = trackingURL
    self.caCertificates = caCertificates
  }

  /// The value of an optional key, or `missingKey`: asked for by what cannot do without it.
  package func require<Value>(
    _ value: KeyPath<KapeSDKSettings, Value?>, _ key: SettingsKey
  ) throws(KapeSDKSettingsError) -> Value {
    guard let value = self[keyPath: value] else { throw .missingKey(key.rawValue) }
    return value
  }
}
