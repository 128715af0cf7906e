public import Foundation

/// An attempt begins: one configuration is tried.
public struct VpnAnalyticsAttemptBeginEvent: Sendable {
  public var sessionId: UUID
  public var connectionId: UUID
  public var attemptId: UUID
  /// The very one that is tried; cast it for details.
  public var configuration: any VpnConfiguration
  /// What the user prefers: `automatic`, `wireguard`, `lightway` or `openvpn`.
  public var selectedProtocol: String
  public var selectedLocationDescription: String?

  public init(
    sessionId: UUID, connectionId: UUID, attemptId: UUID, configuration: any VpnConfiguration,
    selectedProtocol: String = "automatic", selectedLocationDescription: String? = nil
  ) {
    self.sessionId = sessionId
    self.connectionId = connectionId
    self.attemptId = attemptId
    self.configuration = configuration
    self.selectedProtocol = selectedProtocol
    self.selectedLocationDescription = selectedLocationDescription
  }
}

/// An attempt ended.
public struct VpnAnalyticsAttemptEndEvent: Hashable, Sendable {
  public var attemptId: UUID
  public var result: PacketTunnelAttemptResult
  /// Since it began.
  public var elapsedMs: Int
  /// What it connected to, when it did.
  public var endpoint: PacketTunnelConnectedEndpoint?
  /// What the user prefers: `automatic`, `wireguard`, `lightway` or `openvpn`.
  public var selectedProtocol: String
  public var selectedLocationDescription: String?

  public init(
    attemptId: UUID, result: PacketTunnelAttemptResult, elapsedMs: Int = 0,
    endpoint: PacketTunnelConnectedEndpoint? = nil, selectedProtocol: String = "automatic",
    selectedLocationDescription: String? = nil
  ) {
    self.attemptId = attemptId
    self.result = result
    self.elapsedMs = elapsedMs
    self.endpoint = endpoint
    self.selectedProtocol = selectedProtocol
    self.selectedLocationDescription = selectedLocationDescription
  }
}
