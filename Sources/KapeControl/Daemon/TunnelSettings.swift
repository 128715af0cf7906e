package import KapeProtocols

/// What a provider wants its tunnel to be: addresses, routes, name servers, MTU. One value, applied as a whole.
package struct TunnelSettings: Equatable, Sendable {
  package var addresses: [InterfaceAddress] = []
  /// What goes into the tunnel. A default route makes it a full tunnel of that family.
  package var includedRoutes: [IPPrefix] = []
  /// What stays outside although an included route covers it.
  package var excludedRoutes: [IPPrefix] = []
  package var nameServers: [ScopedAddress] = []
  package var searchDomains: [String] = []
  /// nil, or with an empty name in it: the name servers are asked for every name; else for names in these domains only.
  package var matchDomains: [String]?
  /// nil: as the system has it.
  package var mtu: UInt32?
  /// Told to whoever asks for the status; no program of the system is made to use them.
  package var proxies: TunnelProxies?
  /// The server, for people; nothing depends on it.
  package var remoteAddress = ""

  package init() {}
}

/// Proxies that a server wants its clients to use (HTTP, HTTPS, or a configuration script).
package struct TunnelProxies: Equatable, Sendable {
  package struct Server: Equatable, Sendable {
    package var host: String
    package var port: UInt16

    package init(host: String, port: UInt16) {
      self.host = host
      self.port = port
    }
  }

  package var http: Server?
  package var https: Server?
  package var scriptURL: String?
  /// Hosts and domains that are reached without a proxy.
  package var exceptions: [String] = []

  package init() {}
}

/// A socket that is not to go into the tunnel.
package struct OutsideSocket: Equatable, Sendable {
  package enum Kind: String, Sendable, CaseIterable { case udp, tcp }

  package var family: IPAddress.Family
  package var kind: Kind

  package init(_ family: IPAddress.Family, _ kind: Kind) {
    self.family = family
    self.kind = kind
  }
}
