internal import KapeProtocols

/// What no provider may ask for, whoever's it is.
enum SettingsCheck {
  /// `interface`: the provider's own; `taken`: addresses of all others. Throws `IPCFailure`.
  static func check(_ settings: TunnelSettings, interface: String, taken: [IPAddress]) throws(IPCFailure) {
    for address in settings.addresses {
      if let reason = address.address.reasonAgainstInterface { throw refusal("address \(address)", reason) }
      if taken.contains(address.address) {
        throw refusal("address \(address)", "it is another interface's of this machine")
      }
    }
    for route in settings.includedRoutes + settings.excludedRoutes where route.isWithinLoopback {
      throw refusal("route \(route)", "it is the loopback interface's")
    }
    for server in settings.nameServers {
      if let scope = server.scope, scope != interface {
        throw refusal("name server \(server)", "\(scope) is not the tunnel's interface")
      }
      if server.address.isMulticast || server.address.isUnspecified {
        throw refusal("name server \(server)", "no server has that address")
      }
    }
    try checkMTU(settings)
  }

  private static func checkMTU(_ settings: TunnelSettings) throws(IPCFailure) {
    guard let mtu = settings.mtu else { return }
    let hasIPv6 = settings.addresses.contains { $0.address.family == .ipv6 }
    let smallest: UInt32 = hasIPv6 ? 1280 : 576
    guard mtu >= smallest else {
      throw IPCFailure(.invalid, "MTU \(mtu): \(smallest) is the least\(hasIPv6 ? " with IPv6 (RFC 8200)" : "")")
    }
  }

  private static func refusal(_ what: String, _ reason: String) -> IPCFailure {
    IPCFailure(.refused, "\(what): \(reason)")
  }
}

extension IPAddress {
  fileprivate static let loopbackIPv4 = IPPrefix(IPAddress(ipv4: 127, 0, 0, 0), length: 8)
  fileprivate static let loopbackIPv6 = IPPrefix("::1/128")
  private static let mappedIPv4 = IPPrefix("::ffff:0:0/96")
  private static let thisNetwork = IPPrefix(IPAddress(ipv4: 0, 0, 0, 0), length: 8)
  private static let multicastIPv4 = IPPrefix(IPAddress(ipv4: 224, 0, 0, 0), length: 4)
  private static let multicastIPv6 = IPPrefix("ff00::/8")
  private static let broadcast = IPAddress(ipv4: 255, 255, 255, 255)

  fileprivate func isIn(_ prefix: IPPrefix?) -> Bool { prefix?.contains(self) ?? false }

  fileprivate var isMulticast: Bool { isIn(Self.multicastIPv4) || isIn(Self.multicastIPv6) }

  fileprivate var reasonAgainstInterface: String? {
    if isIn(Self.loopbackIPv4) || isIn(Self.loopbackIPv6) { return "it is the loopback interface's" }
    if isMulticast { return "it is a group's" }
    if isUnspecified || isIn(Self.thisNetwork) || self == Self.broadcast { return "no interface has that address" }
    if isIn(Self.mappedIPv4) { return "it is an IPv4 address in another form" }
    return nil
  }
}

extension IPPrefix {
  /// A shorter prefix covers loopback addresses too, but those never come to the routing table.
  fileprivate var isWithinLoopback: Bool {
    [IPAddress.loopbackIPv4, IPAddress.loopbackIPv6].contains { $0?.contains(self) ?? false }
  }
}
