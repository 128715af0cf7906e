public import Foundation

/// A session begins.
public struct VpnAnalyticsSessionBeginEvent: Hashable, Sendable {
  public var sessionId: UUID
  public var connectSource: PacketTunnelConnectSource
  /// What the user prefers: `automatic`, `wireguard`, `lightway` or `openvpn`.
  public var selectedProtocol: String
  public var selectedLocationDescription: String?

  public init(
    sessionId: UUID, connectSource: PacketTunnelConnectSource = .manual, selectedProtocol: String = "automatic",
    selectedLocationDescription: String? = nil
  ) {
    self.sessionId = sessionId
    self.connectSource = connectSource
    self.selectedProtocol = selectedProtocol
    self.selectedLocationDescription = selectedLocationDescription
  }
}

/// A session ended.
public struct VpnAnalyticsSessionEndEvent: Hashable, Sendable {
  public var sessionId: UUID
  public var reason: PacketTunnelSessionDisconnectReason
  /// Since it began.
  public var durationMs: Int
  public var wasEverConnected: Bool
  public var connectSource: PacketTunnelConnectSource
  /// What the user prefers: `automatic`, `wireguard`, `lightway` or `openvpn`.
  public var selectedProtocol: String
  public var selectedLocationDescription: String?

  public init(
    sessionId: UUID, reason: PacketTunnelSessionDisconnectReason, durationMs: Int = 0, wasEverConnected: Bool = false,
    connectSource: PacketTunnelConnectSource = .manual, selectedProtocol: String = "automatic",
    selectedLocationDescription: String? = nil
  ) {
    self.sessionId = sessionId
    self.reason = reason
    self.durationMs = durationMs
    self.wasEverConnected = wasEverConnected
    self.connectSource = connectSource
    self.selectedProtocol = selectedProtocol
    self.selectedLocationDescription = selectedLocationDescription
  }
}
