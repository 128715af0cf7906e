/// Bytes that passed the tunnel.
public struct PacketTunnelDataUsage: Hashable, Codable, Sendable {
  public var bytesReceived: UInt64
  public var bytesSent: UInt64

  public init(bytesReceived: UInt64, bytesSent: UInt64) {
    self.bytesReceived = bytesReceived
    self.bytesSent = bytesSent
  }
}
