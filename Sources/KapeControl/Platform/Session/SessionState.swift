package import Foundation

/// A session as others may see it.
package struct SessionState: Equatable, Sendable {
  package var status = KapeVPNConnectionStatus.disconnected
  package var connectedEndpoint: PacketTunnelConnectedEndpoint?
  /// Since when it is connected.
  package var connectedSince: Date?
  package var dataUsage = PacketTunnelDataUsage(bytesReceived: 0, bytesSent: 0)
  /// When a pause ends by itself.
  package var pausedUntil: Date?
  /// What stands in the way, or what ended the session; nil since something connected.
  package var lastError: PacketTunnelError?
  /// What ended the session; nil while there is one.
  package var endCause: KapeSessionEndCause?

  package init() {}
}

/// Follows a session. Called in order, on the session's actor: it returns at once.
package protocol SessionObserver: Sendable {
  func sessionDidChange(_ state: SessionState)
}

/// What only knows to end a session's start: nothing that trying again could help.
package struct TerminalStartError: Error {
  package var error: PacketTunnelError

  package init(_ error: PacketTunnelError) { self.error = error }
}
