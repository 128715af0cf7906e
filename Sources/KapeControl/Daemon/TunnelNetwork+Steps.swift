import Glibc
internal import KapeProtocols

extension TunnelNetwork {
  /// Makes whatever of `next` is not there.
  func bring(_ next: NetworkPlan, _ netlink: borrowing Netlink) async throws {
    // Else all addresses of a network go with the first of them, and all routes with the last. It goes with the link.
    try? KernelParameter.write("1", to: "net/ipv4/conf/\(name)/promote_secondaries")
    try netlink.setLink(index, up: true, mtu: next.mtu)
    let present = try netlink.addresses(of: index)
    for address in next.addresses where !present.contains(address) { try netlink.addAddress(address, to: index) }
    try addRoutes(next, netlink)
    for family in next.families where !state.rules.contains(where: { $0.family == family }) {
      try addRules(family, netlink)
    }
    for family in next.families where state.guarded[family] != next.addresses(family) {
      try addGuard(family, next.addresses(family))
    }
    if next.hasNames, state.names.map({ !$0.hasSameNames(next) }) ?? true { try await setNames(next) }
    state.plan = next
  }

  /// Takes away whatever was of `old` and is not of what is wanted now.
  func remove(_ old: NetworkPlan, _ netlink: borrowing Netlink) async throws {
    let present = state.plan
    if state.areNamesTouched, !present.hasNames { try await takeNames() }
    for family in old.families where !present.families.contains(family) { try await takeRules(family) }
    for route in old.tableRoutes where !present.tableRoutes.contains(route) {
      try removeRoute(Route(route, table: mark, interface: index), netlink)
    }
    for route in old.mainRoutes where !present.mainRoutes.contains(route) {
      try removeRoute(Route(route, interface: index), netlink)
    }
    let goes = old.addresses.filter { !present.addresses.contains($0) }
    for address in goes {
      do throws(NetlinkError) {
        try netlink.deleteAddress(address, from: index)
      } catch {
        guard error.code == EADDRNOTAVAIL else { throw error }
      }
    }
    // Routes whose source it was went with an address.
    if !goes.isEmpty { try addRoutes(present, netlink) }
  }

  // MARK: Routes

  private func addRoutes(_ plan: NetworkPlan, _ netlink: borrowing Netlink) throws {
    for route in plan.tableRoutes { try addRoute(Route(route, table: mark, interface: index), netlink) }
    for route in plan.mainRoutes { try addRoute(Route(route, interface: index), netlink) }
  }

  private func addRoute(_ route: Route, _ netlink: borrowing Netlink) throws {
    do throws(NetlinkError) {
      try netlink.addRoute(route)
    } catch {
      guard error.code == EEXIST else { throw error }
      let family = route.destination.address.family
      let ours = try netlink.routes(family, table: route.table, interface: index) {
        $0.destination == route.destination
      }
      guard ours.isEmpty else { return }
      throw IPCFailure(.busy, "route \(route.destination): another interface has it in table \(route.table)")
    }
  }

  private func removeRoute(_ route: Route, _ netlink: borrowing Netlink) throws {
    do throws(NetlinkError) {
      try netlink.deleteRoute(route)
    } catch {
      guard error.code == ESRCH || error.code == ENOENT else { throw error }
    }
  }

  /// Destinations in the main table that other interfaces serve.
  func routesOfOthers(_ netlink: borrowing Netlink) throws -> [IPPrefix] {
    let index = index
    var found: [IPPrefix] = []
    for family in IPAddress.Family.allCases {
      found += try netlink.routes(family) { $0.interface != index }.map(\.destination)
    }
    return found
  }

  func addressesOfOthers(_ netlink: borrowing Netlink) throws -> [IPAddress] {
    let own = try netlink.addresses(of: index).map(\.address)
    return try netlink.addresses(of: 0).map(\.address).filter { !own.contains($0) }
  }

  // MARK: Rules

  private var routing: PolicyRouting { PolicyRouting(interface: name, journal: journal) }

  private func addRules(_ family: IPAddress.Family, _ netlink: borrowing Netlink) throws {
    for rule in PolicyRule.fullTunnel(family, table: mark) { state.rules.append(try routing.addRule(rule, netlink)) }
    if family == .ipv4, let warning = try routing.markValidSources() { warnings.append(warning) }
  }

  private func addGuard(_ family: IPAddress.Family, _ addresses: [IPAddress]) throws {
    if let warning = try routing.addGuard(family, mark: mark, addresses) { warnings.append(warning) }
    state.guarded[family] = addresses
  }

  private func takeRules(_ family: IPAddress.Family) async throws {
    try await putBack { record in
      switch record {
      case .rule(let rule): rule.family == family
      case .guardTable(_, let guarded): guarded == family
      case .parameter: family == .ipv4
      default: false
      }
    }
    state.rules.removeAll { $0.family == family }
    state.guarded[family] = nil
  }

  // MARK: Names

  /// A provider waits ten seconds for its settings; each program of these gets a part of them.
  private static let nameDeadline: Duration = .seconds(3)

  private func setNames(_ next: NetworkPlan) async throws {
    // The service keeps servers that no later command replaces.
    if state.nameMethod == .resolved, next.nameServers.isEmpty { try await takeNames() }
    state.names = nil
    state.areNamesTouched = true
    let services = NameServices(
      interface: name, wanted: .init(servers: next.nameServers, search: next.searchDomains),
      domains: next.matchDomains, folder: folder, deadline: Self.nameDeadline)
    let standing = JournalSummary(try Journal.read(journal.path) ?? []).resolverFile
    let journal = journal
    state.nameMethod = try await services.apply(replacing: standing) { try journal.append($0) }
    state.names = next
    if state.nameMethod != .resolved, next.nameServers.count > 3 {
      warnings.append("programs use only the first three of \(next.nameServers.count) name servers")
    }
  }

  private func takeNames() async throws {
    try await putBack { record in
      switch record {
      case .resolvconf, .resolved, .resolverFile, .resolverFileWritten, .resolverFileReturning: true
      default: false
      }
    }
    state.names = nil
    state.nameMethod = nil
    state.areNamesTouched = false
  }
}
