import Foundation
import KapeControl

/// What the backend wants to know of who calls: on every call for a receipt or a connection token.
struct ClientDetails: Equatable, Sendable {
  static let sdkVersion = "0.1.0"

  var appVersion: String
  var deviceModel: String
  var osVersion: String

  init(appVersion: String?, deviceModel: String?) {
    self.appVersion = Self.field(appVersion ?? Self.bundleVersion)
    self.deviceModel = DeviceModel.header(deviceModel)
    osVersion = Self.field(Self.kernelRelease)
  }

  var fields: [String: String] {
    [
      "x-client-app-version": appVersion, "x-client-device-model": deviceModel, "x-client-os": "linux",
      "x-client-os-version": osVersion, "x-sdk-version": Self.sdkVersion,
    ]
  }

  private static var bundleVersion: String? {
    Bundle.main.object(forInfoDictionaryKey: "CFBundleShortVersionString") as? String
  }

  private static var kernelRelease: String? {
    var name = utsname()
    guard uname(&name) == 0 else { return nil }
    return withUnsafeBytes(of: &name.release) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
  }

  /// 1 to 64 visible characters.
  private static func field(_ text: String?) -> String {
    let text = (text ?? "").filter { $0.isASCII && !$0.isWhitespace && ($0.asciiValue ?? 0) > 0x20 }.prefix(64)
    return text.isEmpty ? "unknown" : String(text)
  }
}
