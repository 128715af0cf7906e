/// One WireGuard connection.
package protocol WireGuardDriver: PacketTunnelDriver {
  /// Returns once the first handshake is complete. Takes the socket over, also when it throws.
  func connect(_ setup: WireGuardSetup, socket: PacketTunnelSocket) async throws
}
