/// What ended a session, or its last failure, as one word of a closed list: for status files, scripts and reports.
public enum KapeSessionEndCause: String, Codable, CaseIterable, Sendable {
  case userInitiated
  /// The system took the tunnel down: shut-down, sleep, another tunnel, the profile gone.
  case systemStopped
  /// The tunnel's process ended without a word.
  case providerFailed
  case startDeadlinePassed
  case protocolNotBundled
  case invalidSettings
  case notSignedIn
  case noSubscription
  case noConfiguration
  case configurationFailed
  case authenticationFailed
  case emptyCredentials
  case connectTimeout
  case handshakeFailed
  case connectionLost
  case closedByServer
  case tunnelSetupFailed
  case unsupportedConfiguration
  case networkFailed
  case cancelled
}

extension PacketTunnelError {
  /// The same as one word.
  public var cause: KapeSessionEndCause {
    switch self {
    case .protocolNotBundled: .protocolNotBundled
    case .noConfiguration: .noConfiguration
    case .configurationFailed: .configurationFailed
    case .invalidSettings: .invalidSettings
    case .notSignedIn: .notSignedIn
    case .noSubscription: .noSubscription
    case .authenticationFailed: .authenticationFailed
    case .emptyCredentials: .emptyCredentials
    case .connectTimeout: .connectTimeout
    case .handshakeFailed: .handshakeFailed
    case .connectionLost: .connectionLost
    case .closedByServer: .closedByServer
    case .tunnelSetupFailed: .tunnelSetupFailed
    case .unsupportedConfiguration: .unsupportedConfiguration
    case .cancelled: .cancelled
    case .network: .networkFailed
    case .startDeadlinePassed: .startDeadlinePassed
    }
  }
}
