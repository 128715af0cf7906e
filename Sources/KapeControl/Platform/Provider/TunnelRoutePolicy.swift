import KapeControl
import KapeProtocols

/// What a full tunnel leaves out, and what it must hold whatever else is left out.
enum TunnelRoutePolicy {
  typealias Prefix = PacketTunnelInterfaceSettings.Prefix

  /// What stays outside a default route so that the local network remains reachable: private use (RFC 1918), link-local
  /// (RFC 3927) and local multicast (RFC 5771, section 4).
  static let localRanges = [
    Prefix(.v4(ipV4: "10.0.0.0"), length: 8), Prefix(.v4(ipV4: "172.16.0.0"), length: 12),
    Prefix(.v4(ipV4: "192.168.0.0"), length: 16), Prefix(.v4(ipV4: "169.254.0.0"), length: 16),
    Prefix(.v4(ipV4: "224.0.0.0"), length: 24),
  ]

  /// The same settings with the local network left out of a default route, a route to each resolver and to the gateway,
  /// and the resolvers' list tidied: blanks trimmed, empty ones and repetitions gone, the order kept.
  static func apply(
    to settings: PacketTunnelInterfaceSettings, allowingLocalNetwork: Bool
  ) -> PacketTunnelInterfaceSettings {
    var applied = settings
    applied.dnsServers = tidied(settings.dnsServers)
    let hosts = applied.dnsServers + (settings.gateway.map { [$0] } ?? [])
    applied.includedRoutes = unique(settings.includedRoutes + hosts.map { Prefix(host: $0) })
    let included = applied.includedRoutes.compactMap(parsed)
    var excluded = settings.excludedRoutes
    if allowingLocalNetwork, included.contains(where: { $0.isDefault && $0.address.family == .ipv4 }) {
      // A narrower route that covers a range was meant as it says; one within a range is the longer prefix anyway.
      let named = included.filter { !$0.isDefault }
      excluded += localRanges.filter { range in
        guard let range = parsed(range) else { return false }
        return !named.contains { $0.contains(range) }
      }
    }
    applied.excludedRoutes = unique(excluded)
    return applied
  }

  private static func parsed(_ prefix: Prefix) -> IPPrefix? {
    IPAddress(prefix.address.description).flatMap { IPPrefix($0, length: prefix.length) }
  }

  private static func tidied(_ servers: [IpAddress]) -> [IpAddress] {
    unique(servers.map { IpAddress($0.description.filter { !$0.isWhitespace }) }.filter { !$0.description.isEmpty })
  }

  private static func unique<Value: Hashable>(_ values: [Value]) -> [Value] {
    var seen: Set<Value> = []
    return values.filter { seen.insert($0).inserted }
  }
}
