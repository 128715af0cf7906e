/// A WireGuard server: where it takes packets, where keys are exchanged, and what an authenticator found out there.
public struct WireguardEndpointConfiguration: Hashable, Sendable {
  /// Where it takes packets.
  public var ip: IpAddress
  public var port: UInt16
  /// Where keys are exchanged, by HTTPS.
  public var authIp: IpAddress
  public var authPort: UInt16
  /// The common name that the certificate there must have.
  public var certDn: String
  public var obfuscation: WireguardObfuscation

  // Filled in by the authenticator.

  /// In base64.
  public var serverPublicKey: String?
  /// In base64. Secret.
  public var clientPrivateKey: String?
  /// The address inside the tunnel: `10.5.6.7`, or with a prefix length.
  public var internalIp: String?
  /// In base64; nil: none. Secret.
  public var presharedKey: String?
  /// Resolvers. Empty: derived from `internalIp`. A list that is here before the authenticator is asked stays.
  public var dnsServers: [IpAddress] = []
  /// The server's private address, which gets a route of its own.
  public var gateway: IpAddress?

  public init(
    ip: IpAddress, port: UInt16, authIp: IpAddress, authPort: UInt16, certDn: String,
    obfuscation: WireguardObfuscation = .none
  ) {
    self.ip = ip
    self.port = port
    self.authIp = authIp
    self.authPort = authPort
    self.certDn = certDn
    self.obfuscation = obfuscation
  }

  /// Whether all is there that a connection takes.
  var isAuthorized: Bool {
    [serverPublicKey, clientPrivateKey, internalIp].allSatisfy { !($0 ?? "").allSatisfy(\.isWhitespace) }
  }
}

// A description that ends up in a log has no key in it.
extension WireguardEndpointConfiguration: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  public var description: String {
    "WireGuard endpoint, port \(port), certificate \(certDn), \(isAuthorized ? "with keys" : "without keys")"
  }
  public var debugDescription: String { description }
  public var customMirror: Mirror { Mirror(self, children: [:]) }
}
