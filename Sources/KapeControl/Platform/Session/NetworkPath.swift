internal import KapeProtocols

/// How packets leave the machine, tunnels apart.
package struct NetworkPath: Hashable, Sendable {
  /// By one family. A change of any part is another path.
  package struct Route: Hashable, Sendable {
    package var interface: String
    package var source: String?
    package var gateway: String?

    package init(interface: String, source: String? = nil, gateway: String? = nil) {
      self.interface = interface
      self.source = source
      self.gateway = gateway
    }
  }

  package var ipv4: Route?
  package var ipv6: Route?

  package init(ipv4: Route? = nil, ipv6: Route? = nil) {
    self.ipv4 = ipv4
    self.ipv6 = ipv6
  }

  package var isOnline: Bool { ipv4 != nil || ipv6 != nil }

  /// Whether packets to `host` leave by the same way on both; to an unknown host, all packets.
  func isSame(as other: NetworkPath, towards host: IPAddress?) -> Bool {
    switch host?.family {
    case .ipv4: ipv4 == other.ipv4
    case .ipv6: ipv6 == other.ipv6
    case nil: self == other
    }
  }
}

/// Tells of the path: as it is when it is asked, then whenever something may have changed. The same may come many times.
package protocol NetworkPathMonitor: Sendable {
  func paths() -> AsyncStream<NetworkPath>
}
