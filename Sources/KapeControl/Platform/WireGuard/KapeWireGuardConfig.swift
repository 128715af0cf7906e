/// A WireGuard connection: the endpoint, what an authenticator found out for it, and how it is to be run.
public struct KapeWireGuardConfig: VpnConfiguration, Hashable {
  public var endpointConfiguration: WireguardEndpointConfiguration
  /// Where packets go: an IP address.
  public var host: String
  public var port: UInt16
  public var obfuscation: WireguardObfuscation
  /// Bytes of the largest packet inside.
  public var mtu: UInt16

  public init(
    endpointConfiguration: WireguardEndpointConfiguration, host: String, port: UInt16,
    obfuscation: WireguardObfuscation = .none, mtu: UInt16 = 1280
  ) {
    self.endpointConfiguration = endpointConfiguration
    self.host = host
    self.port = port
    self.obfuscation = obfuscation
    self.mtu = mtu
  }

  public var vpnProtocolName: String { "wireguard" }
  public var cipherDescription: String { "chacha20-poly1305" }

  public var obfuscationDescription: String {
    switch obfuscation {
    case .none: "none"
    case .amnezia: "amnezia"
    case .unknown: "unknown"
    }
  }
}
