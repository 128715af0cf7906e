/// Why settings of a tunnel were not applied. Those that were there before are there still.
public struct NETunnelProviderError: Error, Equatable, Sendable, CustomNSError, LocalizedError, CustomStringConvertible
{
  public enum Code: Int, Sendable {
    /// A value makes no sense, or is one that no provider may ask for.
    case networkSettingsInvalid = 1
    /// Others came in their place, or the tunnel ended meanwhile.
    case networkSettingsCanceled = 2
    /// The system refused, or did not answer in time.
    case networkSettingsFailed = 3
  }

  public let code: Code
  /// What was wrong, and where.
  public let reason: String

  public init(_ code: Code, _ reason: String = "") {
    self.code = code
    self.reason = reason
  }

  public static let errorDomain = NETunnelProviderErrorDomain
  public var errorCode: Int { code.rawValue }
  public var errorUserInfo: [String: Any] { [NSLocalizedDescriptionKey: description] }
  public var errorDescription: String? { description }

  public var description: String {
    let kind =
      switch code {
      case .networkSettingsInvalid: "the tunnel's settings are not valid"
      case .networkSettingsCanceled: "the tunnel's settings were replaced before they were applied"
      case .networkSettingsFailed: "the tunnel's settings could not be applied"
      }
    return reason.isEmpty ? kind : kind + ": " + reason
  }

  public static let networkSettingsInvalid = Code.networkSettingsInvalid
  public static let networkSettingsCanceled = Code.networkSettingsCanceled
  public static let networkSettingsFailed = Code.networkSettingsFailed
}

/// The platform's name of it.
// swift-format-ignore: AlwaysUseLowerCamelCase
public let NETunnelProviderErrorDomain = "NETunnelProviderErrorDomain"
