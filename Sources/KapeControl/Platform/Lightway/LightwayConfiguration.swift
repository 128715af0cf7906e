public enum LightwayTransport: String, Codable, CaseIterable, Sendable {
  case udp
  case tcp
}

/// One Lightway server by one transport.
public struct LightwayEndpoint: Hashable, Sendable {
  public var ip: IpAddress
  public var port: UInt16
  public var transport: LightwayTransport
  /// Bytes of the largest packet outside.
  public var mtu: UInt16
  /// The common name that the server's certificate must have.
  public var certDn: String
  /// What hides it on the wire, by name; `none`.
  public var obfuscation: String

  public init(
    ip: IpAddress, port: UInt16, transport: LightwayTransport = .udp, mtu: UInt16 = 1500, certDn: String,
    obfuscation: String = "none"
  ) {
    self.ip = ip
    self.port = port
    self.transport = transport
    self.mtu = mtu
    self.certDn = certDn
    self.obfuscation = obfuscation
  }
}

/// An HTTPS or HTTP proxy that a Lightway connection by TCP goes through.
public struct LightwayProxy: Hashable, Sendable {
  public enum Authentication: Hashable, Sendable {
    case none
    case basic(username: String, password: String)
    /// By the same connection token that the backend gives for Lightway.
    case tokenAuth
  }

  public var host: String
  public var port: UInt16
  /// Whether the proxy itself is spoken to by TLS.
  public var tls: Bool
  public var authentication: Authentication

  public init(host: String, port: UInt16, tls: Bool = true, authentication: Authentication = .none) {
    self.host = host
    self.port = port
    self.tls = tls
    self.authentication = authentication
  }
}

/// A group of Lightway servers that are tried at the same time.
public struct LightwayConfiguration: VpnConfiguration, Hashable {
  /// In order of preference.
  public var endpoints: [LightwayEndpoint]
  public var proxy: LightwayProxy?
  /// The access token of a dedicated IP, which takes the place of all other credentials; nil: not dedicated. Secret.
  public var dedicatedIPToken: String?
  /// Bytes of the largest packet inside.
  public var mtu: UInt16
  /// PEM of what the servers' certificates are anchored to; empty: the one that was set for all.
  public var caCertificate: String
  /// Resolvers; empty: those of the server.
  public var dnsServers: [IpAddress]

  public init(
    endpoints: [LightwayEndpoint], proxy: LightwayProxy? = nil, dedicatedIPToken: String? = nil, mtu: UInt16 = 1350,
    caCertificate: String = "", dnsServers: [IpAddress] = []
  ) {
    self.endpoints = endpoints
    self.proxy = proxy
    self.dedicatedIPToken = dedicatedIPToken
    self.mtu = mtu
    self.caCertificate = caCertificate
    self.dnsServers = dnsServers
  }

  public var vpnProtocolName: String { "lightway" }
  public var isProxied: Bool { proxy != nil }
  /// That of the endpoints; `mixed` when they differ.
  public var obfuscationDescription: String {
    let kinds = Set(endpoints.map(\.obfuscation))
    return kinds.count > 1 ? "mixed" : kinds.first ?? "none"
  }
}

// Descriptions that end up in a log have neither token nor password in them.
extension LightwayConfiguration: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  public var description: String { "Lightway group of \(endpoints.count)\(isProxied ? ", by a proxy" : "")" }
  public var debugDescription: String { description }
  public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension LightwayProxy: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  public var description: String { "proxy, port \(port)" }
  public var debugDescription: String { description }
  public var customMirror: Mirror { Mirror(self, children: [:]) }
}
