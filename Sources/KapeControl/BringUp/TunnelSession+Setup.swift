import Glibc
internal import KapeProtocols

extension TunnelSession {
  // MARK: Endpoints

  /// The socket addresses of all endpoints, names looked up. Fails when one that is needed cannot be found.
  func lookUpEndpoints() async throws -> [WireGuardEndpoint: SocketAddress] {
    var found: [WireGuardEndpoint: SocketAddress] = [:]
    for peer in configuration.peers {
      guard let endpoint = peer.endpoint else { continue }
      if case .name(let name) = endpoint.host {
        names.add(peer.publicKey, name: name, port: endpoint.port)
        if found[endpoint] == nil {
          let addresses = try await firstAddresses(of: name)
          guard let first = addresses.first else { throw Failure.failed("\(name): it has no address") }
          found[endpoint] = SocketAddress(first, port: endpoint.port)
        }
      } else {
        guard let address = endpoint.socketAddress() else {
          throw Failure.failed("endpoint \(endpoint): there is no such interface")
        }
        found[endpoint] = address
      }
    }
    return found
  }

  /// Asks the underlay's servers, and the system's other sources when they know nothing: no tunnel is in the way yet.
  /// A network that is only just coming up gets some time.
  private func firstAddresses(of name: String) async throws -> [IPAddress] {
    let mark = configuration.interface.firewallMark
    var attempt = 0
    while true {
      do {
        guard let resolver else { throw UnderlayResolver.Failure(name: name, reason: "there is no name server") }
        return try sorted(try await resolver.addresses(of: name, mark: mark), mark)
      } catch let failure as UnderlayResolver.Failure {
        do {
          return try sorted(try await UnderlayResolver.systemAddresses(of: name), mark)
        } catch let second as UnderlayResolver.Failure {
          attempt += 1
          if attempt >= 3 || (failure.isFinal && second.isFinal) { throw failure }
          try await Task.sleep(for: .seconds(attempt))
        }
      }
    }
  }

  func sorted(_ addresses: [IPAddress], _ mark: UInt32) throws -> [IPAddress] {
    let netlink = try Netlink()
    return EndpointOrder.sort(addresses) { try? netlink.route(to: $0, mark: mark) }
  }

  // MARK: MTU

  func chooseMTU(_ endpoints: [SocketAddress], _ netlink: borrowing Netlink) throws(NetlinkError) -> UInt32 {
    if let mtu = configuration.interface.mtu { return UInt32(mtu) }
    var found: [UInt32] = []
    for endpoint in endpoints {
      let route = try netlink.route(
        to: endpoint.address, scope: endpoint.scope, mark: configuration.interface.firewallMark)
      if let route { found.append(try Self.mtu(of: route, netlink)) }
    }
    var defaultMTU: UInt32?
    if found.isEmpty, let route = try netlink.routes(.ipv4, where: { $0.destination.isDefault }).first {
      let mtu = try Self.mtu(of: route, netlink)
      defaultMTU = mtu == 0 ? nil : mtu
    }
    return InterfaceMTU.choose(endpoints: found, defaultRoute: defaultMTU)
  }

  private static func mtu(of route: Route, _ netlink: borrowing Netlink) throws(NetlinkError) -> UInt32 {
    if route.mtu != 0 { return route.mtu }
    return try netlink.link(at: route.interface)?.mtu ?? 0
  }

  // MARK: Name servers

  func setNameServices() async throws {
    let interface = configuration.interface
    guard !interface.dnsServers.isEmpty || !interface.dnsSearchDomains.isEmpty else { return }
    if interface.dnsServers.count > 3 {
      warn("programs use only the first three of \(interface.dnsServers.count) name servers")
    }
    let services = NameServices(
      interface: name, wanted: .init(servers: interface.dnsServers, search: interface.dnsSearchDomains),
      folder: directory.path)
    let journal = journal
    let method = try await services.apply { try journal.append($0) }
    settings.nameServiceMethod = method.rawValue
    settings.nameServers = interface.dnsServers
    settings.searchDomains = interface.dnsSearchDomains
  }

  // MARK: Routes

  func setRoutes(_ endpoints: [SocketAddress], _ netlink: borrowing Netlink) async throws {
    let index = index
    var present: [IPPrefix] = []
    for family in IPAddress.Family.allCases {
      present += try netlink.routes(family, interface: index).map(\.destination)
    }
    let plan = RoutePlan(
      configuration.peers.flatMap(\.allowedIPs), table: request.table, present: present, interface: index)
    for route in plan.routes { try netlink.addRoute(route) }
    settings.routes = plan.routes
    let mark = configuration.interface.firewallMark
    for endpoint in endpoints where mark == 0 && plan.fullTunnels.isEmpty {
      if let route = plan.routes.first(where: {
        $0.table == Route.mainTable && $0.destination.contains(endpoint.address)
      }) {
        warn("the endpoint \(endpoint) is within \(route.destination): the tunnel's own packets would go into it")
      }
    }
    guard !plan.fullTunnels.isEmpty else { return }
    let table: UInt32
    if mark != 0 {
      table = mark
      try addDefaultRoutes(plan.fullTunnels, table, netlink)
    } else {
      // Nothing leads into the table before there are rules.
      table = try claimTable(plan.fullTunnels, netlink)
      var change = WireGuardInterfaceChange()
      change.firewallMark = table
      try await service?.device.apply(change)
    }
    settings.table = table
    // The link-local one that the kernel made is among them.
    let addresses = try netlink.addresses(of: index).map(\.address)
    for family in plan.fullTunnels { try setFullTunnel(family, table, addresses, netlink) }
    settings.fullTunnels = plan.fullTunnels
  }

  /// A table that had no routes, and has this tunnel's default routes now. Others may look for one at the same moment:
  /// tunnels of ours wait for each other, and where another program's route is there first (EEXIST), another table is
  /// found.
  private func claimTable(
    _ families: [IPAddress.Family], _ netlink: borrowing Netlink
  ) throws(NetlinkError) -> UInt32 {
    let turn = RunDirectory.takeTurn()
    defer { RunDirectory.end(turn) }
    var table = RoutePlan.firstTable
    while true {
      var isTaken = try netlink.hasRoutes(.ipv4, table: table)
      if !isTaken { isTaken = try netlink.hasRoutes(.ipv6, table: table) }
      if !isTaken {
        do throws(NetlinkError) {
          try addDefaultRoutes(families, table, netlink)
          return table
        } catch {
          guard error.code == EEXIST else { throw error }
        }
      }
      table += 1
    }
  }

  /// All of them, or none.
  private func addDefaultRoutes(
    _ families: [IPAddress.Family], _ table: UInt32, _ netlink: borrowing Netlink
  ) throws(NetlinkError) {
    var added: [Route] = []
    do throws(NetlinkError) {
      for family in families {
        guard let everything = IPPrefix(family == .ipv4 ? .anyIPv4 : .anyIPv6, length: 0) else { continue }
        let route = Route(everything, table: table, interface: index)
        try netlink.addRoute(route)
        added.append(route)
      }
    } catch {
      for route in added { try? netlink.deleteRoute(route) }
      throw error
    }
    settings.routes += added
  }

  private func setFullTunnel(
    _ family: IPAddress.Family, _ table: UInt32, _ addresses: [IPAddress], _ netlink: borrowing Netlink
  ) throws {
    let routing = PolicyRouting(interface: name, journal: journal)
    for rule in PolicyRule.fullTunnel(family, table: table) {
      settings.rules.append(try routing.addRule(rule, netlink))
    }
    if family == .ipv4, let warning = try routing.markValidSources() { warn(warning) }
    if let warning = try routing.addGuard(family, mark: table, addresses) {
      warn(warning)
    } else {
      settings.guardTables.append((family == .ipv4 ? "ip " : "ip6 ") + routing.guardTable)
    }
  }
}
