package import KapeProtocols

/// One endpoint as discovery tells it.
package enum DiscoveredEndpoint: Hashable, Sendable {
  case wireGuard(WireGuard)
  case openVPN(OpenVPN)
  case lightway(Lightway)
  case proxy(Proxy)

  package struct WireGuard: Hashable, Sendable {
    package var address: IPAddress
    package var port: UInt16
    /// Where keys are exchanged, by HTTPS.
    package var authAddress: IPAddress
    package var authPort: UInt16
    /// Common name of the certificate there.
    package var certDn: String
    package var obfuscation: String
  }

  package struct OpenVPN: Hashable, Sendable {
    package var address: IPAddress
    package var port: UInt16
    package var transport: OpenVPNTransport
    package var certDn: String
    package var mtu: UInt16
    /// Directives, one a line.
    package var profile: String
    /// PEM.
    package var caCertificate: String
    /// PEM of a static key.
    package var tlsAuthKey: String?
    package var xorValue: Int?
    package var obfuscation: String
  }

  package struct Lightway: Hashable, Sendable {
    package var address: IPAddress
    package var port: UInt16
    package var transport: LightwayTransport
    package var mtu: UInt16
    package var certDn: String
    /// PEM.
    package var caCertificate: String
    package var obfuscation: String
  }

  package struct Proxy: Hashable, Sendable {
    package enum Authentication: String, Codable, Sendable {
      case none
      /// By the connection token.
      case token
    }

    package var address: IPAddress
    package var port: UInt16
    package var tls: Bool
    package var certDn: String
    package var authentication: Authentication
  }
}

extension DiscoveredEndpoint {
  package var discoveryProtocol: DiscoveryProtocol {
    switch self {
    case .wireGuard: .wireguard
    case .openVPN: .openvpn
    case .lightway: .lightway
    case .proxy: .proxy
    }
  }

  /// Of the server that it belongs to.
  package var address: IPAddress {
    switch self {
    case .wireGuard(let endpoint): endpoint.address
    case .openVPN(let endpoint): endpoint.address
    case .lightway(let endpoint): endpoint.address
    case .proxy(let endpoint): endpoint.address
    }
  }

  package var port: UInt16 {
    switch self {
    case .wireGuard(let endpoint): endpoint.port
    case .openVPN(let endpoint): endpoint.port
    case .lightway(let endpoint): endpoint.port
    case .proxy(let endpoint): endpoint.port
    }
  }

  /// What hides it on the wire.
  package var obfuscation: String {
    switch self {
    case .wireGuard(let endpoint): endpoint.obfuscation
    case .openVPN(let endpoint): endpoint.obfuscation
    case .lightway(let endpoint): endpoint.obfuscation
    case .proxy: "none"
    }
  }

  /// Whether it takes TCP and nothing else.
  package var isTCP: Bool {
    switch self {
    case .wireGuard: false
    case .openVPN(let endpoint): endpoint.transport == .tcp
    case .lightway(let endpoint): endpoint.transport == .tcp
    case .proxy: true
    }
  }

  /// What makes two endpoints the same one: where and how it is reached.
  package struct Identity: Hashable, Sendable {
    let discoveryProtocol: DiscoveryProtocol
    let address: IPAddress
    let port: UInt16
    let isTCP: Bool
    let obfuscation: String
  }

  package var identity: Identity {
    Identity(
      discoveryProtocol: discoveryProtocol, address: address, port: port, isTCP: isTCP, obfuscation: obfuscation)
  }
}
