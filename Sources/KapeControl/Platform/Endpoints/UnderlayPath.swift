package import KapeProtocols

/// Which addresses the network that a tunnel runs over can reach.
package struct UnderlayPath: Hashable, Sendable {
  package var hasIPv4: Bool
  package var hasIPv6: Bool
  package var nat64: NAT64Prefix?

  package init(hasIPv4: Bool, hasIPv6: Bool, nat64: NAT64Prefix? = nil) {
    self.hasIPv4 = hasIPv4
    self.hasIPv6 = hasIPv6
    self.nat64 = nat64
  }

  /// Nothing is known of it: every address is as good as another.
  package static let unknown = UnderlayPath(hasIPv4: true, hasIPv6: true)

  /// The address to use for one of the backend's: itself; what stands for it here; nil: it cannot be reached.
  package func address(_ address: IPAddress) -> IPAddress? {
    switch address.family {
    case .ipv6: hasIPv6 ? address : nil
    case .ipv4: hasIPv4 ? address : hasIPv6 ? nat64?.synthesized(address) : nil
    }
  }

  /// The candidate with addresses that can be used here, without the endpoints that cannot; nil: none is left.
  package func candidate(_ candidate: EndpointCandidate) -> EndpointCandidate? {
    switch candidate {
    case .wireGuard(var endpoint):
      guard let address = address(endpoint.address), let authAddress = self.address(endpoint.authAddress) else {
        return nil
      }
      endpoint.address = address
      endpoint.authAddress = authAddress
      return .wireGuard(endpoint)
    case .openVPN(var endpoint):
      guard let address = address(endpoint.address) else { return nil }
      endpoint.address = address
      return .openVPN(endpoint)
    case .lightway(let endpoints, var proxy?):
      // The proxy makes the way to the endpoints, over a network of its own.
      guard let address = address(proxy.address) else { return nil }
      proxy.address = address
      return .lightway(endpoints, proxy: proxy)
    case .lightway(let endpoints, nil):
      let reachable = endpoints.compactMap { endpoint in
        address(endpoint.address).map {
          var endpoint = endpoint
          endpoint.address = $0
          return endpoint
        }
      }
      return reachable.isEmpty ? nil : .lightway(reachable, proxy: nil)
    }
  }
}
