public import Foundation

/// Takes a controller's word of its attempts. Safe to call from anywhere; it returns at once.
public protocol AttemptReporter: Sendable {
  /// An attempt begins. Gives its identifier, which its end is told with.
  func attemptDidBegin(configuration: any VpnConfiguration) -> UUID

  /// An attempt ended. Every attempt that began ends, once. `endpoint` is what it connected to, when it did.
  func attemptDidEnd(_ attemptId: UUID, result: PacketTunnelAttemptResult, endpoint: PacketTunnelConnectedEndpoint?)
}
