/// What happens to traffic when the tunnel drops.
public enum KapeKillSwitchMode: String, Codable, CaseIterable, Sendable {
  /// It goes on outside the tunnel.
  case off
  /// It is held back until the tunnel is up again; the local network and the system's services go on.
  case standard
  /// Nothing leaves but by the tunnel, not even into the local network.
  case advanced
}
