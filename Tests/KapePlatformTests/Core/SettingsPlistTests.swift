import Foundation
import KapePlatform
import Testing

/// The five keys that the documentation names.
func documentedValues() -> [String: Any] {
  [
    "AppGroupIdentifier": "group.example.vpn", "KeychainService": "com.example.vpn.session", "ClientId": "example-app",
    "IssuerURL": "https://id.example.com/", "RedirectURL": "com.example.vpn:/callback",
  ]
}

@Suite("§3.1, §16: what a property list of settings may say") struct SettingsPlistTests {
  private let folder: ScratchFolder

  init() throws { folder = try ScratchFolder() }

  private func settings(_ change: (inout [String: Any]) -> Void) throws -> KapeSDKSettings {
    var values = documentedValues()
    change(&values)
    let path = try folder.write("KapeSDK.plist", plist: values)
    return try KapeSDKSettings(contentsOf: URL(fileURLWithPath: path))
  }

  @Test("the five documented keys alone are enough, in XML, binary and with unknown keys beside them")
  func documentedKeysAlone() throws {
    let settings = try settings { $0["SomethingOfTheApp"] = [1, 2] }
    #expect(settings.appGroupIdentifier == "group.example.vpn")
    #expect(settings.keychainService == "com.example.vpn.session")
    #expect(settings.clientId == "example-app")
    #expect(settings.issuerURL.absoluteString == "https://id.example.com/")
    #expect(settings.redirectURL.absoluteString == "com.example.vpn:/callback")
    #expect(settings.keychainAccessGroup == nil && settings.tenantId == nil && settings.apiBaseURL == nil)
    #expect(settings.tunnelBundleIdentifier == nil && settings.trackingURL == nil && settings.caCertificates == [])
    let binary = try PropertyListSerialization.data(
      fromPropertyList: documentedValues(), format: .binary, options: 0)
    let path = try folder.write("binary.plist", binary)
    #expect(try KapeSDKSettings(contentsOf: URL(fileURLWithPath: path)).clientId == "example-app")
  }

  @Test("every key has its value")
  func everyKey() throws {
    let settings = try settings { values in
      values["KeychainAccessGroup"] = "ABCDE.com.example"
      values["TenantId"] = "xv"
      values["APIBaseURL"] = "http://127.0.0.1:8480/api"
      values["TunnelBundleIdentifier"] = "com.example.vpn.tunnel"
      values["TrackingURL"] = "https://events.example.com/track"
      values["CACertificates"] = [Data([0x30, 1, 2]), Self.pem([0x30, 9]) + Self.pem([0x30, 8])] as [Any]
    }
    #expect(settings.keychainAccessGroup == "ABCDE.com.example")
    #expect(settings.tenantId == "xv")
    #expect(settings.apiBaseURL?.absoluteString == "http://127.0.0.1:8480/api")
    #expect(settings.tunnelBundleIdentifier == "com.example.vpn.tunnel")
    #expect(settings.trackingURL?.absoluteString == "https://events.example.com/track")
    #expect(settings.caCertificates == [Data([0x30, 1, 2]), Data([0x30, 9]), Data([0x30, 8])])
  }

  private static func pem(_ bytes: [UInt8]) -> String {
    "of someone\n-----BEGIN CERTIFICATE-----\n\(Data(bytes).base64EncodedString())\n-----END CERTIFICATE-----\n"
  }

  @Test(
    "a required key that is missing is named",
    arguments: ["AppGroupIdentifier", "KeychainService", "ClientId", "IssuerURL", "RedirectURL"])
  func missing(_ key: String) {
    let error = #expect(throws: KapeSDKSettingsError.missingKey(key)) { try settings { $0[key] = nil } }
    #expect(error?.description.contains(key) == true)
  }

  @Test("an optional key that is missing is named where its value is needed")
  func missingOptional() throws {
    let settings = try settings { _ in }
    #expect(throws: KapeSDKSettingsError.missingKey("APIBaseURL")) { try settings.require(\.apiBaseURL, .apiBaseURL) }
    #expect(throws: KapeSDKSettingsError.missingKey("TenantId")) { try KapeProductType.vpn.entitlements(settings) }
  }

  @Test(
    "group and service are names of folders, and nothing that leads elsewhere",
    arguments: ["", ".", "..", "../up", "a/b", "/etc", ".hidden", "with space", "ümlaut", "nul\0", "new\nline"])
  func pathComponents(_ value: String) {
    for key in ["AppGroupIdentifier", "KeychainService", "TunnelBundleIdentifier"] {
      // A property list cannot hold a NUL.
      guard !value.contains("\0") else { continue }
      #expect(throws: KapeSDKSettingsError.invalidValue(key: key)) { try settings { $0[key] = value } }
    }
    #expect(throws: KapeSDKSettingsError.invalidValue(key: "AppGroupIdentifier")) {
      var changed = try settings { _ in }
      changed.appGroupIdentifier = value
      try changed.validate()
    }
  }

  @Test("a name of 200 bytes fits, one of 201 does not")
  func longNames() throws {
    #expect(try settings { $0["KeychainService"] = String(repeating: "k", count: 200) }.keychainService.count == 200)
    #expect(throws: KapeSDKSettingsError.invalidValue(key: "KeychainService")) {
      try settings { $0["KeychainService"] = String(repeating: "k", count: 201) }
    }
  }

  @Test(
    "hosts are reached by TLS, or are this machine",
    arguments: [
      ("https://id.example.com", true), ("https://[2001:db8::1]:8443/x", true), ("http://127.0.0.1:80", true),
      ("http://127.9.9.9", true), ("http://[::1]:8480/", true), ("http://localhost:1", true),
      ("http://id.example.com", false), ("http://127.0.0.1.example.com", false), ("http://128.0.0.1", false),
      ("https://user:secret@id.example.com", false), ("https://id.example.com/?q", false),
      ("https://id.example.com/#f", false), ("ftp://id.example.com", false), ("https://", false),
      ("id.example.com", false), ("", false), ("https://id.example.com/a b", false),
    ])
  func hosts(_ text: String, _ isRight: Bool) throws {
    for key in ["IssuerURL", "APIBaseURL", "TrackingURL"] {
      if isRight {
        _ = try settings { $0[key] = text }
      } else {
        #expect(throws: KapeSDKSettingsError.invalidValue(key: key)) { try settings { $0[key] = text } }
      }
    }
  }

  @Test(
    "a redirect URL is absolute and has no fragment",
    arguments: [
      ("com.example.app:/callback", true), ("http://127.0.0.1/callback", true), ("https://app.example.com/cb", true),
      ("/callback", false), ("https://app.example.com/cb#x", false), ("http:///cb", false), ("", false),
    ])
  func redirects(_ text: String, _ isRight: Bool) throws {
    if isRight {
      #expect(try settings { $0["RedirectURL"] = text }.redirectURL.absoluteString == text)
    } else {
      #expect(throws: KapeSDKSettingsError.invalidValue(key: "RedirectURL")) {
        try settings { $0["RedirectURL"] = text }
      }
    }
  }

  @Test("a value of another type is named", arguments: SettingsKey.allCases)
  func otherTypes(_ key: SettingsKey) {
    #expect(throws: KapeSDKSettingsError.invalidValue(key: key.rawValue)) { try settings { $0[key.rawValue] = 7 } }
    #expect(throws: KapeSDKSettingsError.invalidValue(key: key.rawValue)) { try settings { $0[key.rawValue] = [:] } }
  }

  @Test(
    "certificates are whole, or refused",
    arguments: ["", "-----BEGIN CERTIFICATE-----\nMAA=\n", "-----BEGIN CERTIFICATE-----\n*\n-----END CERTIFICATE-----"])
  func certificates(_ text: String) {
    #expect(throws: KapeSDKSettingsError.invalidValue(key: "CACertificates")) {
      try settings { $0["CACertificates"] = text }
    }
  }

  @Test("what is no property list is named with its path: text, a list, a folder, a pipe, more than a MiB")
  func noPropertyList() throws {
    let paths = [
      try folder.write("text.plist", "AppGroupIdentifier=x"),
      try folder.write("array.plist", "<plist><array/></plist>"),
      try folder.write("large.plist", String(repeating: " ", count: 1 << 20) + "<plist><dict/></plist>"),
      folder.path, folder.path + "/pipe.plist",
    ]
    mkfifo(folder.path + "/pipe.plist", 0o600)
    for path in paths {
      let error = #expect(throws: KapeSDKSettingsError.invalidPlist(path: path)) {
        try KapeSDKSettings(contentsOf: URL(fileURLWithPath: path))
      }
      #expect(error?.description.contains(path) == true)
    }
  }
}
