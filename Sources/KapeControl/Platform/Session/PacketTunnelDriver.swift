/// One connection of an engine, from its handshake to its end. A controller makes one for each connection and lets it
/// connect (in a form of its own, see `OpenVPNDriver` and `LightwayDriver`), attaches it to an interface, and runs it.
public protocol PacketTunnelDriver: AnyObject, Sendable {
  /// Carries packets between the connection and the interface from now on. Takes the descriptor over, also when it
  /// throws.
  func attach(_ interface: PacketTunnelInterface) async throws

  /// Suspends for the life of the connection. Nil: it was stopped; else what ended it.
  func run() async -> PacketTunnelError?

  /// Ends everything, also a `connect` that is under way, and lets `run` return. May be called at any time and any
  /// number of times.
  func stop() async

  /// Bytes since the connection came up; nil when they are not counted.
  func currentDataUsage() async -> PacketTunnelDataUsage?
}

extension PacketTunnelDriver {
  public func currentDataUsage() async -> PacketTunnelDataUsage? { nil }
}
