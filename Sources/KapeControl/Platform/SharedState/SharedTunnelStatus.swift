package import Foundation

/// What the tunnel says to the app, in `status.json`. Nothing in it tells the server's address.
package struct SharedTunnelStatus: Equatable, Sendable {
  package var status: KapeVPNConnectionStatus
  /// What went wrong last, while it has not been made good.
  package var lastError: PacketTunnelError?
  /// What ended the session, or its last failure.
  package var cause: KapeSessionEndCause?
  /// When the connection that is up came up.
  package var connectedSince: Date?
  /// When a pause ends.
  package var pausedUntil: Date?
  /// `WireGuard`, `openvpn-udp` and the like, of the connection that is up.
  package var protocolDescription: String?
  /// Where the connection goes.
  package var locationId: String?

  package init(
    _ status: KapeVPNConnectionStatus, lastError: PacketTunnelError? = nil, cause: KapeSessionEndCause? = nil,
    connectedSince: Date? = nil, pausedUntil: Date? = nil, protocolDescription: String? = nil,
    locationId: String? = nil
  ) {
    self.status = status
    self.lastError = lastError
    self.cause = cause
    self.connectedSince = connectedSince
    self.pausedUntil = pausedUntil
    self.protocolDescription = protocolDescription
    self.locationId = locationId
  }
}

extension SharedTunnelStatus: Codable {
  private enum Key: String, CodingKey {
    case status, lastError, cause, connectedSince, pausedUntil, protocolDescription, locationId
  }

  /// Without a status there is nothing; each other value that cannot be read is one that was not said.
  package init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: Key.self)
    func optional<Value: Decodable>(_ key: Key) -> Value? { try? values.decode(Value.self, forKey: key) }
    self.init(
      try values.decode(KapeVPNConnectionStatus.self, forKey: .status), lastError: optional(.lastError),
      cause: optional(.cause), connectedSince: optional(.connectedSince), pausedUntil: optional(.pausedUntil),
      protocolDescription: optional(.protocolDescription), locationId: optional(.locationId))
  }
}
