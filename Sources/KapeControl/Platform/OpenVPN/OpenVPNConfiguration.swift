public enum OpenVPNTransport: String, Codable, CaseIterable, Sendable {
  case udp
  case tcp
}

/// An OpenVPN server by one transport. A server with two is two configurations.
public struct OpenVPNConfiguration: VpnConfiguration, Hashable {
  public var host: String
  public var port: UInt16
  public var transport: OpenVPNTransport
  /// Profile text; a line or two such as `cipher AES-128-GCM` are enough.
  public var ovpnConfiguration: String
  /// Profile text that `ovpnConfiguration` goes on top of; nil: none.
  public var ovpnConfigTemplate: String?
  /// What the bytes on the wire are XORed with; nil: nothing.
  public var xorValue: Int?
  /// Whether the server has the operator's changes to the protocol.
  public var usesPIAPatches: Bool
  /// Bytes of the largest packet inside; 0: the protocol's default.
  public var mtu: UInt16
  /// The common name that the server's certificate must have; empty: any.
  public var certDn: String
  public var username: String
  /// Secret.
  public var password: String
  /// PEM; empty: none.
  public var caCertificate: String
  /// PEM; empty: none.
  public var clientCertificate: String
  /// PEM; empty: none. Secret.
  public var clientKey: String
  /// A static key in OpenVPN's form; empty: none. Secret.
  public var tlsAuthKey: String
  public var appGroupIdentifier: String
  /// Resolvers; empty: those that the server pushes.
  public var dnsServers: [String]

  public init(
    host: String, port: UInt16, transport: OpenVPNTransport, ovpnConfiguration: String,
    ovpnConfigTemplate: String? = nil, xorValue: Int? = nil, usesPIAPatches: Bool = false, mtu: UInt16 = 0,
    certDn: String = "", username: String = "", password: String = "", caCertificate: String = "",
    clientCertificate: String = "", clientKey: String = "", tlsAuthKey: String = "", appGroupIdentifier: String = "",
    dnsServers: [String] = []
  ) {
    self.host = host
    self.port = port
    self.transport = transport
    self.ovpnConfiguration = ovpnConfiguration
    self.ovpnConfigTemplate = ovpnConfigTemplate
    self.xorValue = xorValue
    self.usesPIAPatches = usesPIAPatches
    self.mtu = mtu
    self.certDn = certDn
    self.username = username
    self.password = password
    self.caCertificate = caCertificate
    self.clientCertificate = clientCertificate
    self.clientKey = clientKey
    self.tlsAuthKey = tlsAuthKey
    self.appGroupIdentifier = appGroupIdentifier
    self.dnsServers = dnsServers
  }

  public var vpnProtocolName: String { "openvpn" }
  public var obfuscationDescription: String { xorValue == nil ? "none" : "xor" }
}

// A description that ends up in a log has neither key nor password in it.
extension OpenVPNConfiguration: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  public var description: String { "OpenVPN endpoint, \(transport.rawValue) port \(port), certificate \(certDn)" }
  public var debugDescription: String { description }
  public var customMirror: Mirror { Mirror(self, children: [:]) }
}
