package import KapeCrypto
package import KapeProtocols

/// Where the peers are whose endpoint is a name, and when the name is looked up again. A peer that can be reached keeps
/// its endpoint, wherever it has moved to: names matter only when handshakes keep failing.
///
/// Times are nanoseconds of any clock that only goes forward.
package struct EndpointNames: Sendable {
  /// Not more often than this, whatever fails: a little less than the engine asks for it.
  package static let interval: UInt64 = 25_000_000_000

  private struct Entry: Sendable {
    let name: String
    let port: UInt16
    /// Where something authentic came from last.
    var lastGood: SocketAddress?
    /// The endpoint that a look-up led to, and what had been received of the peer then.
    var tried: (endpoint: SocketAddress, received: UInt64)?
    var notBefore: UInt64 = 0
    var isBeingLookedUp = false
  }
  private var entries: [PublicKey: Entry] = [:]

  package init() {}

  package var isEmpty: Bool { entries.isEmpty }

  package mutating func add(_ peer: PublicKey, name: String, port: UInt16) {
    entries[peer] = Entry(name: name, port: port)
  }

  package func name(of peer: PublicKey) -> String? { entries[peer]?.name }

  /// A handshake came off, or the peer was heard from elsewhere.
  package mutating func connected(_ peer: PublicKey, at endpoint: SocketAddress?) {
    if let endpoint { entries[peer]?.lastGood = endpoint }
  }

  /// The name to look up now, if it is time. `received` counts bytes of the peer: more than when an endpoint was set,
  /// and that one was good, by a session that was there already.
  package mutating func begin(_ peer: PublicKey, received: UInt64 = 0, now: UInt64) -> String? {
    guard var entry = entries[peer], !entry.isBeingLookedUp, now >= entry.notBefore else { return nil }
    if let tried = entry.tried, received > tried.received { entry.lastGood = tried.endpoint }
    entry.tried = nil
    entry.isBeingLookedUp = true
    entry.notBefore = now &+ Self.interval
    entries[peer] = entry
    return entry.name
  }

  /// The endpoint was set.
  package mutating func tried(_ endpoint: SocketAddress, for peer: PublicKey, received: UInt64) {
    entries[peer]?.tried = (endpoint, received)
  }

  /// What the name says now, in order of preference. Gives the endpoint to try, nil when there is no other: the next
  /// one when the present one is among them (it does not answer), else the first.
  package mutating func found(_ addresses: [IPAddress], for peer: PublicKey, present: SocketAddress?) -> SocketAddress?
  {
    guard let entry = entries[peer] else { return nil }
    entries[peer]?.isBeingLookedUp = false
    let candidates = addresses.map { SocketAddress($0, port: entry.port) }
    guard let present, let index = candidates.firstIndex(of: present) else { return candidates.first }
    return candidates.count > 1 ? candidates[(index + 1) % candidates.count] : nil
  }

  /// The look-up failed. Gives the last endpoint that worked, if the present one is another.
  package mutating func failed(_ peer: PublicKey, present: SocketAddress?) -> SocketAddress? {
    guard let entry = entries[peer] else { return nil }
    entries[peer]?.isBeingLookedUp = false
    return entry.lastGood == present ? nil : entry.lastGood
  }
}

/// The order in which a name's addresses are tried, a short form of RFC 6724: those that there is a route to first;
/// among them IPv6 first, but not from a source of smaller reach than the address.
package enum EndpointOrder {
  package static func sort(_ addresses: [IPAddress], route: (IPAddress) -> Route?) -> [IPAddress] {
    let ranked = addresses.enumerated().map { (rank: rank($0.element, route($0.element)), $0.offset, $0.element) }
    return ranked.sorted { ($0.rank, $0.1) < ($1.rank, $1.1) }.map(\.2)
  }

  private static func rank(_ address: IPAddress, _ route: Route?) -> Int {
    guard let route else { return 3 }
    if address.family == .ipv4 { return 1 }
    guard let source = route.source else { return 0 }
    return isLocal(source) && !isLocal(address) ? 2 : 0
  }

  /// Link-local, or unique local (RFC 4193).
  private static func isLocal(_ address: IPAddress) -> Bool {
    address.isLinkLocal || (address.family == .ipv6 && uniqueLocal?.contains(address) ?? false)
  }

  private static let uniqueLocal = IPPrefix("fc00::/7")
}
