/// What a tunnel is connected to.
public struct PacketTunnelConnectedEndpoint: Hashable, Codable, Sendable {
  /// Its IP address.
  public var host: String
  /// `WireGuard`, `openvpn-udp` and the like.
  public var protocolDescription: String

  public init(host: String, protocolDescription: String) {
    self.host = host
    self.protocolDescription = protocolDescription
  }
}
