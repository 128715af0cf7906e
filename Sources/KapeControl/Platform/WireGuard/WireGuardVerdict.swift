package import KapeControl

/// What the engine's events and counters mean for a connection with one peer.
package struct WireGuardVerdict: Sendable {
  package enum Change: Equatable, Sendable {
    /// The first handshake is complete.
    case connected
    case over(PacketTunnelError)
  }

  private var isConnected = false
  private var data: ConnectionLiveness
  private var control: ConnectionLiveness

  package init(deadTime: Duration = .seconds(15)) {
    data = ConnectionLiveness(deadTime: deadTime)
    control = ConnectionLiveness(deadTime: deadTime)
  }

  package mutating func take(_ event: TunnelEvent, at now: Duration) -> Change? {
    switch event.kind {
    case .connected, .rekeyed:
      control.didReceive()
      defer { isConnected = true }
      return isConnected ? nil : .connected
    case .handshakeStarted:
      // One try of the first handshake that goes unanswered says nothing yet.
      if isConnected { control.didSend(at: now) }
      return control.isDead(at: now) ? .over(.connectionLost) : nil
    case .handshakeFailed:
      // The engine gave up.
      return .over(isConnected ? .connectionLost : .handshakeFailed)
    case .disconnected:
      return isConnected ? .over(.connectionLost) : nil
    case .insideGone:
      return .over(.tunnelSetupFailed("the interface is gone"))
    case .endpointChanged, .prefixMoved, .rebound, .resolve, .underLoad, .clockBack, .fallback, .linkError: return nil
    }
  }

  /// Bytes of packets inside that were sent, and bytes of messages that were received.
  package mutating func look(sent: UInt64, received: UInt64, at now: Duration) -> Change? {
    guard isConnected else { return nil }
    data.look(sent: sent, received: received, at: now)
    return data.isDead(at: now) || control.isDead(at: now) ? .over(.connectionLost) : nil
  }
}
