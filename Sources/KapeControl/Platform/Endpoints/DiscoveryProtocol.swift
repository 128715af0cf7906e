/// What endpoints can be asked for, by the backend's names.
package enum DiscoveryProtocol: String, Codable, CaseIterable, Comparable, Sendable {
  case lightway
  case openvpn
  case wireguard
  /// HTTPS and HTTP proxies that Lightway can go by.
  case proxy

  package static func < (one: Self, other: Self) -> Bool { one.rawValue < other.rawValue }
}

extension Set<DiscoveryProtocol> {
  /// As it stands in a request and in the cache: always in the same order.
  package var list: String { sorted().map(\.rawValue).joined(separator: ",") }
}
