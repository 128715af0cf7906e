/// What an OpenVPN server is shown.
public struct OpenVPNCredentials: Hashable, Sendable {
  public var username: String
  /// Secret.
  public var password: String

  public init(username: String, password: String) {
    self.username = username
    self.password = password
  }
}

// A description that ends up in a log has no password in it.
extension OpenVPNCredentials: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  public var description: String { "OpenVPN credentials" }
  public var debugDescription: String { description }
  public var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// Gives credentials for an OpenVPN server, in a way of one's own.
public protocol PacketTunnelOpenVPNAuthenticator: Sendable {
  /// Called once an attempt, right before the endpoint is connected. Whatever it throws skips that endpoint, as does an
  /// empty name or password.
  func credentials(for configuration: OpenVPNConfiguration) async throws -> OpenVPNCredentials
}
