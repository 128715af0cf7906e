public import Foundation

/// Why a tunnel, or one attempt to bring it up, failed. Texts are for people: short, without secrets or public addresses.
public enum PacketTunnelError: Error, Hashable, Codable, Sendable {
  /// No protocol is linked, or none for the configuration.
  case protocolNotBundled
  /// There was nothing to connect to.
  case noConfiguration
  /// Configurations could not be had: discovery, or a generator of one's own, failed.
  case configurationFailed(String)
  /// The settings of the SDK (`KapeSDK.plist`) cannot be used.
  case invalidSettings(String)
  /// There is no session: nobody is signed in.
  case notSignedIn
  /// No subscription grants the use of the VPN.
  case noSubscription
  /// The authenticator, or the server, refused.
  case authenticationFailed(String)
  /// The authenticator gave credentials or keys that are empty.
  case emptyCredentials
  /// The endpoint did not answer in time.
  case connectTimeout
  /// The endpoint answered, but the handshake did not succeed.
  case handshakeFailed
  /// The connection was up and the other end fell silent.
  case connectionLost
  /// The other end ended the connection; what it said, if anything.
  case closedByServer(String)
  /// The interface, its addresses, routes or resolvers could not be set up.
  case tunnelSetupFailed(String)
  /// Something that was asked for does not exist, by name.
  case unsupportedConfiguration(String)
  case cancelled
  case network(String)
  /// Nothing connected within the time that a start has, and the last error of the attempts.
  indirect case startDeadlinePassed(lastError: PacketTunnelError?)
}

extension PacketTunnelError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .protocolNotBundled: "no VPN protocol is linked for this (add a bridge such as KapeVPN-WireGuard-Bridge)"
    case .noConfiguration: "there is nothing to connect to"
    case .configurationFailed(let text): "no configuration could be had: \(text)"
    case .invalidSettings(let text): "the SDK's settings cannot be used: \(text)"
    case .notSignedIn: "nobody is signed in"
    case .noSubscription: "no subscription grants the use of the VPN"
    case .authenticationFailed(let text): "authentication failed: \(text)"
    case .emptyCredentials: "the authenticator gave empty credentials"
    case .connectTimeout: "the endpoint did not answer in time"
    case .handshakeFailed: "the handshake failed"
    case .connectionLost: "the connection was lost"
    case .closedByServer(let text): text.isEmpty ? "the server ended the connection" : "the server said: \(text)"
    case .tunnelSetupFailed(let text): "the tunnel could not be set up: \(text)"
    case .unsupportedConfiguration(let text): "not supported: \(text)"
    case .cancelled: "cancelled"
    case .network(let text): "network: \(text)"
    case .startDeadlinePassed(nil): "nothing connected in time"
    case .startDeadlinePassed(let last?): "nothing connected in time; last: \(last)"
    }
  }
}

extension PacketTunnelError: LocalizedError {
  public var errorDescription: String? { description }
}
