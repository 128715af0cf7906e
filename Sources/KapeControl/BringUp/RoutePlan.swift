package import KapeProtocols

/// Which routes a tunnel's allowed IPs ask for. The rules are wg-quick(8)'s; the plan is data, so that they can be
/// tested without an interface.
package struct RoutePlan: Equatable, Sendable {
  package enum Table: Equatable, Sendable {
    /// The main table; default routes in one of their own, chosen by policy rules.
    case automatic
    case off
    case number(UInt32)
  }

  /// The first table, and mark, that a full tunnel tries.
  package static let firstTable: UInt32 = 51820

  /// Routes by the interface, the most specific first; without default routes that need a table of their own.
  package var routes: [Route] = []
  /// Families whose default route goes into a table of its own, with rules that lead there; IPv6 first.
  package var fullTunnels: [IPAddress.Family] = []

  /// `present`: destinations in the main table that the interface has already, by its addresses.
  package init(_ allowedIPs: [IPPrefix], table: Table, present: [IPPrefix] = [], interface: UInt32 = 0) {
    // Ties stay in the order of the file.
    let sorted = allowedIPs.enumerated().sorted {
      $0.element.length != $1.element.length ? $0.element.length > $1.element.length : $0.offset < $1.offset
    }.map(\.element)
    switch table {
    case .off: break
    case .number(let number): routes = sorted.map { Route($0, table: number, interface: interface) }
    case .automatic:
      for prefix in sorted {
        if prefix.isDefault {
          fullTunnels.insert(prefix.address.family, at: prefix.address.family == .ipv6 ? 0 : fullTunnels.count)
        } else if !present.contains(where: { $0.contains(prefix) }) {
          routes.append(Route(prefix, interface: interface))
        }
      }
    }
  }
}

extension IPPrefix {
  /// Whether every address of `other` is in it.
  package func contains(_ other: IPPrefix) -> Bool {
    other.address.family == address.family && other.length >= length && other.address.masked(to: length) == address
  }

  package func contains(_ other: IPAddress) -> Bool {
    other.family == address.family && other.masked(to: length) == address
  }
}

extension PolicyRule {
  /// The two rules of a full tunnel: packets without the tunnel's mark look into its table, but only after the main
  /// table had its say about everything except its default route.
  package static func fullTunnel(_ family: IPAddress.Family, table: UInt32) -> [PolicyRule] {
    var marked = PolicyRule(family: family, table: table)
    marked.mark = table
    marked.isInverted = true
    var suppressing = PolicyRule(family: family, table: Route.mainTable)
    suppressing.suppressPrefixLength = 0
    return [marked, suppressing]
  }

  /// The priority that the kernel would give a new rule: just before the second of those that are there.
  package static func nextPriority(before present: [PolicyRule]) -> UInt32 {
    present.count > 1 ? max(present[1].priority, 1) - 1 : 0
  }
}

/// The MTU that a tunnel gets when its file names none, as wg-quick(8) finds it.
package enum InterfaceMTU {
  /// Outer IPv6 header, UDP header, WireGuard's header and tag.
  package static let overhead: UInt32 = 80
  package static let fallback: UInt32 = 1500

  /// `endpoints`: what the routes to the peers take; `defaultRoute`: what the default route does.
  package static func choose(endpoints: [UInt32], defaultRoute: UInt32?) -> UInt32 {
    let outer = endpoints.max().flatMap { $0 == 0 ? nil : $0 } ?? defaultRoute ?? fallback
    return outer > overhead ? outer - overhead : outer
  }
}
