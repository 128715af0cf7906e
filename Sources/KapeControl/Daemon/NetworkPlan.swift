package import KapeProtocols

/// Which routes and rules settings ask for. As data, so that it can be tested without an interface.
///
/// What a tunnel includes goes into a table of its own, which rules lead to whatever has not the tunnel's mark: so its own
/// sockets stay outside however narrow a route is. The main table has its say first, except by its default route, so that
/// the local network stays in reach; an included route within one of its wider routes would never be asked then, and
/// goes into the main table itself.
package struct NetworkPlan: Equatable, Sendable {
  private static let mostRoutes = 16_384

  package var addresses: [InterfaceAddress] = []
  package var mtu: UInt32 = 1500
  package var tableRoutes: [IPPrefix] = []
  package var mainRoutes: [IPPrefix] = []
  /// Of which there are rules; IPv6 first.
  package var families: [IPAddress.Family] = []
  package var nameServers: [ScopedAddress] = []
  package var searchDomains: [String] = []
  package var matchDomains: [String]?

  /// Nothing at all.
  package init() {}

  /// `others`: destinations in the main table by other interfaces. nil: the routes that are left when the excluded ones
  /// are taken out are too many.
  package init?(_ settings: TunnelSettings, others: [IPPrefix]) {
    let cover = IPPrefix.cover(
      settings.includedRoutes, without: settings.excludedRoutes, limit: Self.mostRoutes)
    guard let cover else { return nil }
    addresses = settings.addresses
    if let mtu = settings.mtu { self.mtu = mtu }
    tableRoutes = cover
    mainRoutes = cover.filter { route in others.contains { !$0.isDefault && $0.contains(route) } }
    families = [.ipv6, .ipv4].filter { family in cover.contains { $0.address.family == family } }
    nameServers = settings.nameServers
    searchDomains = settings.searchDomains
    matchDomains = settings.matchDomains
  }

  package var hasNames: Bool { !nameServers.isEmpty || !searchDomains.isEmpty }

  func hasSameNames(_ other: NetworkPlan) -> Bool {
    nameServers == other.nameServers && searchDomains == other.searchDomains && matchDomains == other.matchDomains
  }

  func addresses(_ family: IPAddress.Family) -> [IPAddress] {
    addresses.map(\.address).filter { $0.family == family }
  }
}
