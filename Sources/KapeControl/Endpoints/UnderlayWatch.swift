package import KapeProtocols

/// How the tunnel's own packets leave.
package struct Underlay: Equatable, Sendable {
  package struct Path: Hashable, Sendable {
    package var interface: UInt32
    package var source: IPAddress?
    package var gateway: IPAddress?
    package var mtu: UInt32

    package init(_ route: Route) {
      interface = route.interface
      source = route.source
      gateway = route.gateway
      mtu = route.mtu
    }
  }

  /// For each endpoint; nil: there is no route to it.
  package var paths: [IPAddress: Path?]

  package init(_ paths: [IPAddress: Path?] = [:]) { self.paths = paths }

  /// As the kernel has it now. Of many endpoints the first few stand for all: a new network shows at any of them.
  package init(
    _ endpoints: some Sequence<SocketAddress>, mark: UInt32, _ netlink: borrowing Netlink
  ) throws(NetlinkError) {
    paths = [:]
    for endpoint in endpoints where paths[endpoint.address] == nil {
      if paths.count == 64 { break }
      let route = try netlink.route(to: endpoint.address, scope: endpoint.scope, mark: mark)
      paths.updateValue(route.map(Path.init), forKey: endpoint.address)
    }
  }
}

/// Decides when word of changes in the network is worth acting upon: the kernel tells of much that changes nothing for a
/// tunnel, and of one change in several messages. Times are nanoseconds of a clock that only goes forward.
package struct UnderlayWatch: Sendable {
  /// Messages about one change come within this.
  package static let settling: UInt64 = 200_000_000
  /// At most one action in this time; what happens meanwhile is looked at when it is over.
  package static let holdDown: UInt64 = 3_000_000_000

  private var known: Underlay
  private var lastAction: UInt64?
  /// When to look at the underlay; nil: nothing was told.
  package private(set) var due: UInt64?

  package init(_ present: Underlay) { known = present }

  /// Something was told.
  package mutating func notice(now: UInt64) {
    guard due == nil else { return }
    var time = now &+ Self.settling
    if let lastAction { time = max(time, lastAction &+ Self.holdDown) }
    due = time
  }

  /// Looks at the underlay once that is due. True: tell the engine. A path that is gone leaves nothing to do until there
  /// is one again; endpoints that were not known before are no change of the network.
  package mutating func look(at present: Underlay, now: UInt64) -> Bool {
    due = nil
    let before = known.paths
    known = present
    let isNew = present.paths.contains { endpoint, path in
      guard let path, let old = before[endpoint] else { return false }
      return old != path
    }
    if isNew { lastAction = now }
    return isNew
  }
}
