public import Combine

/// What this process's tunnel is doing, for those who follow it.
@MainActor public final class PacketTunnelState: ObservableObject {
  public static let shared = PacketTunnelState()

  /// What it is connected to.
  @Published public var connectedEndpoint: PacketTunnelConnectedEndpoint?
  /// Nil before the first session.
  @Published public var tunnelStatus: KapeVPNConnectionStatus?
  /// What stands in the way, or what ended the session; nil since something connected.
  @Published public var lastError: PacketTunnelError?

  public init() {}
}

/// Shows a session in a `PacketTunnelState`, in order, without waiting for the main thread.
package struct PublishedSessionObserver: SessionObserver {
  private let states: AsyncStream<SessionState>.Continuation

  package init(_ state: PacketTunnelState) {
    let (stream, continuation) = AsyncStream.makeStream(of: SessionState.self, bufferingPolicy: .bufferingNewest(256))
    states = continuation
    Task { @MainActor in
      // An assignment is told to all who follow: only of what is new.
      for await new in stream {
        if state.tunnelStatus != new.status { state.tunnelStatus = new.status }
        if state.connectedEndpoint != new.connectedEndpoint { state.connectedEndpoint = new.connectedEndpoint }
        if state.lastError != new.lastError { state.lastError = new.lastError }
      }
    }
  }

  package func sessionDidChange(_ state: SessionState) { states.yield(state) }
}

/// Tells each of several, in their order.
package struct SessionObservers: SessionObserver {
  private let observers: [any SessionObserver]

  package init(_ observers: [any SessionObserver]) { self.observers = observers }

  package func sessionDidChange(_ state: SessionState) {
    for observer in observers { observer.sessionDidChange(state) }
  }
}
