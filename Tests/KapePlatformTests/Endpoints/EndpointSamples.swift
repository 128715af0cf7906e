import KapeProtocols
import Testing

@testable import KapePlatform

/// An address that is written right.
func address(_ text: String) throws -> IPAddress { try #require(IPAddress(text)) }

let somePEM = "-----BEGIN CERTIFICATE-----\nQQ==\n-----END CERTIFICATE-----\n"

/// Endpoints in short: what a test says nothing of is all the same.
enum Sample {
  static func wireGuard(_ ip: String, port: UInt16 = 1337, obfuscation: String = "none") throws -> DiscoveredEndpoint {
    .wireGuard(
      DiscoveredEndpoint.WireGuard(
        address: try address(ip), port: port, authAddress: try address(ip), authPort: 8443, certDn: "server.test",
        obfuscation: obfuscation))
  }

  static func openVPN(
    _ ip: String, _ transport: OpenVPNTransport, port: UInt16 = 1194, obfuscation: String = "none"
  ) throws -> DiscoveredEndpoint {
    .openVPN(
      DiscoveredEndpoint.OpenVPN(
        address: try address(ip), port: port, transport: transport, certDn: "server.test", mtu: 1500,
        profile: "cipher AES-256-GCM", caCertificate: somePEM, tlsAuthKey: nil, xorValue: nil,
        obfuscation: obfuscation))
  }

  static func lightway(
    _ ip: String, _ transport: LightwayTransport = .udp, port: UInt16 = 443, anchor: String = somePEM
  ) throws -> DiscoveredEndpoint {
    .lightway(
      DiscoveredEndpoint.Lightway(
        address: try address(ip), port: port, transport: transport, mtu: 1500, certDn: "server.test",
        caCertificate: anchor, obfuscation: "none"))
  }

  static func proxy(
    _ ip: String, authentication: DiscoveredEndpoint.Proxy.Authentication = .token
  ) throws -> DiscoveredEndpoint {
    .proxy(
      DiscoveredEndpoint.Proxy(
        address: try address(ip), port: 8443, tls: true, certDn: "proxy.test", authentication: authentication))
  }
}

extension EndpointCandidate {
  /// `wireguard 192.0.2.1`, `openvpn-tcp 192.0.2.1`, `lightway-udp 192.0.2.1+192.0.2.2 by 192.0.2.9`.
  var brief: String {
    switch self {
    case .wireGuard(let endpoint): "wireguard \(endpoint.address)"
    case .openVPN(let endpoint): "openvpn-\(endpoint.transport) \(endpoint.address)"
    case .lightway(let endpoints, let proxy):
      "lightway-\(endpoints[0].transport) " + endpoints.map { "\($0.address)" }.joined(separator: "+")
        + (proxy.map { " by \($0.address)" } ?? "")
    }
  }
}
