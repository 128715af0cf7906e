/// What a Lightway server is shown.
public enum LightwayCredentials: Hashable, Sendable {
  case token(String)
  case usernamePassword(username: String, password: String)

  /// Nothing that a server could accept.
  var isEmpty: Bool {
    switch self {
    case .token(let token): token.isEmpty
    case .usernamePassword(let username, let password): username.isEmpty || password.isEmpty
    }
  }
}

// A description that ends up in a log has no secret in it.
extension LightwayCredentials: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  public var description: String { "Lightway credentials" }
  public var debugDescription: String { description }
  public var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// Gives credentials for Lightway servers, in a way of one's own.
public protocol PacketTunnelLightwayAuthenticator: Sendable {
  /// Called once a group, right before its endpoints are connected; what it gives is for all of them. Whatever it throws
  /// skips the group, as do empty credentials. Not asked for a dedicated IP, which has a token of its own, nor for a proxy
  /// with `.tokenAuth`.
  func credentials(for configuration: LightwayConfiguration) async throws -> LightwayCredentials
}
