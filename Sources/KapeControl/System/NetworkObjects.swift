package import KapeProtocols

/// A network interface as the kernel tells it.
package struct NetworkLink: Hashable, Sendable {
  package var index: UInt32
  package var name: String
  /// "tun", "wireguard", "veth", …; empty for a physical one.
  package var kind: String
  package var mtu: UInt32
  package var isUp: Bool
  package var isRunning: Bool
}

/// A unicast route.
package struct Route: Hashable, Sendable {
  package static let mainTable: UInt32 = 254

  package var destination: IPPrefix
  package var table: UInt32 = Route.mainTable
  /// Interface index, 0: none.
  package var interface: UInt32 = 0
  package var gateway: IPAddress?
  package var source: IPAddress?
  package var metric: UInt32 = 0
  /// 0: the interface's.
  package var mtu: UInt32 = 0

  package init(_ destination: IPPrefix, table: UInt32 = Route.mainTable, interface: UInt32 = 0) {
    self.destination = destination
    self.table = table
    self.interface = interface
  }
}

/// A rule of the routing policy database (ip-rule(8)) of the kinds that a tunnel makes.
package struct PolicyRule: Hashable, Sendable {
  package var family: IPAddress.Family
  /// 0: the kernel chooses.
  package var priority: UInt32 = 0
  package var table: UInt32
  /// nil: whatever the mark.
  package var mark: UInt32?
  /// The rule is for packets that do not match.
  package var isInverted = false
  /// Answers with a prefix of this length or shorter do not count.
  package var suppressPrefixLength: UInt32?

  package init(family: IPAddress.Family, table: UInt32) {
    self.family = family
    self.table = table
  }
}

/// Something changed in the network; what, is to be looked up.
package struct NetworkChange: Hashable, Sendable {
  package enum Kind: Hashable, Sendable { case link, address, route }
  package var kind: Kind
  /// Interface index; 0: not told.
  package var interface: UInt32
}
