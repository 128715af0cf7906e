/// Why a configuration could not be read, saved or started.
public struct NEVPNError: Error, Equatable, Sendable, CustomNSError, LocalizedError, CustomStringConvertible {
  public enum Code: Int, Sendable {
    /// A value makes no sense, or is not supported.
    case configurationInvalid = 1
    /// `isEnabled` is false.
    case configurationDisabled = 2
    case connectionFailed = 3
    /// It was changed or removed meanwhile: load it again.
    case configurationStale = 4
    /// kaped refused, failed, or does not run.
    case configurationReadWriteFailed = 5
    case configurationUnknown = 6
  }

  public let code: Code
  /// What was wrong, and what helps.
  public let reason: String

  public init(_ code: Code, _ reason: String = "") {
    self.code = code
    self.reason = reason
  }

  public static let errorDomain = NEVPNErrorDomain
  public var errorCode: Int { code.rawValue }
  public var errorUserInfo: [String: Any] { [NSLocalizedDescriptionKey: description] }
  public var errorDescription: String? { description }

  public var description: String {
    let kind =
      switch code {
      case .configurationInvalid: "the configuration is not valid"
      case .configurationDisabled: "the configuration is disabled"
      case .connectionFailed: "the connection failed"
      case .configurationStale: "the configuration is not the one that was loaded"
      case .configurationReadWriteFailed: "the configuration could not be read or saved"
      case .configurationUnknown: "something is wrong with the configuration"
      }
    return reason.isEmpty ? kind : kind + ": " + reason
  }

  public static let configurationInvalid = Code.configurationInvalid
  public static let configurationDisabled = Code.configurationDisabled
  public static let connectionFailed = Code.connectionFailed
  public static let configurationStale = Code.configurationStale
  public static let configurationReadWriteFailed = Code.configurationReadWriteFailed
  public static let configurationUnknown = Code.configurationUnknown
}

/// The platform's name of it.
// swift-format-ignore: AlwaysUseLowerCamelCase
public let NEVPNErrorDomain = "NEVPNErrorDomain"
