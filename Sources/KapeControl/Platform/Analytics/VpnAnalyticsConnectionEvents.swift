public import Foundation

/// A connection begins: the session tries to come up.
public struct VpnAnalyticsConnectionBeginEvent: Hashable, Sendable {
  public var sessionId: UUID
  public var connectionId: UUID
  public var reason: PacketTunnelConnectReason
  /// What the user prefers: `automatic`, `wireguard`, `lightway` or `openvpn`.
  public var selectedProtocol: String
  public var selectedLocationDescription: String?

  public init(
    sessionId: UUID, connectionId: UUID, reason: PacketTunnelConnectReason, selectedProtocol: String = "automatic",
    selectedLocationDescription: String? = nil
  ) {
    self.sessionId = sessionId
    self.connectionId = connectionId
    self.reason = reason
    self.selectedProtocol = selectedProtocol
    self.selectedLocationDescription = selectedLocationDescription
  }
}

/// A connection ended.
public struct VpnAnalyticsConnectionEndEvent: Hashable, Sendable {
  public var sessionId: UUID
  public var connectionId: UUID
  public var reason: PacketTunnelConnectionDisconnectReason
  /// The protocol that connected; nil when none did.
  public var effectiveProtocol: String?
  /// The obfuscation that it connected with; nil when none did.
  public var effectiveObfuscation: String?
  /// Since it began.
  public var durationMs: Int
  public var wasConnected: Bool
  /// What the user prefers: `automatic`, `wireguard`, `lightway` or `openvpn`.
  public var selectedProtocol: String
  public var selectedLocationDescription: String?

  public init(
    sessionId: UUID, connectionId: UUID, reason: PacketTunnelConnectionDisconnectReason,
    effectiveProtocol: String? = nil, effectiveObfuscation: String? = nil, durationMs: Int = 0,
    wasConnected: Bool = false, selectedProtocol: String = "automatic", selectedLocationDescription: String? = nil
  ) {
    self.sessionId = sessionId
    self.connectionId = connectionId
    self.reason = reason
    self.effectiveProtocol = effectiveProtocol
    self.effectiveObfuscation = effectiveObfuscation
    self.durationMs = durationMs
    self.wasConnected = wasConnected
    self.selectedProtocol = selectedProtocol
    self.selectedLocationDescription = selectedLocationDescription
  }
}
