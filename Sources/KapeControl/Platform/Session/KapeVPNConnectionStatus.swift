/// What a tunnel is doing.
public enum KapeVPNConnectionStatus: String, Codable, CaseIterable, Sendable {
  case connected
  case connecting
  case reconnecting
  case disconnecting
  case disconnected
  case paused
}

extension KapeVPNConnectionStatus {
  /// Whether sockets are being opened that must go past the tunnel: everything but settled states.
  public var needsSocketProtection: Bool {
    switch self {
    case .connecting, .reconnecting, .disconnecting: true
    case .connected, .disconnected, .paused: false
    }
  }
}
