package import KapeProtocols

/// Something to connect to: one endpoint, or several Lightway ones at the same time.
package enum EndpointCandidate: Hashable, Sendable {
  case wireGuard(DiscoveredEndpoint.WireGuard)
  case openVPN(DiscoveredEndpoint.OpenVPN)
  /// In order of preference: of those that succeed the first wins.
  case lightway([DiscoveredEndpoint.Lightway], proxy: DiscoveredEndpoint.Proxy?)

  package var endpoints: [DiscoveredEndpoint] {
    switch self {
    case .wireGuard(let endpoint): [.wireGuard(endpoint)]
    case .openVPN(let endpoint): [.openVPN(endpoint)]
    case .lightway(let endpoints, _): endpoints.map { .lightway($0) }
    }
  }
}

/// What to try, and in which order. A function of what is in it and of nothing else.
///
/// The list comes in the backend's pecking order. Its kinds (protocol and transport) make steps, in the order in which the
/// list first names each; a plan of one's own may set another. A step takes its first few distinct endpoints over the
/// servers by measured latency before the next step begins; those without a measurement come last, in pecking order.
package struct EndpointOrder: Sendable {
  /// What a linked protocol can do.
  package struct Support: Hashable, Sendable {
    package var discoveryProtocol: DiscoveryProtocol
    /// What it can hide itself by.
    package var obfuscations: Set<String>

    package init(_ discoveryProtocol: DiscoveryProtocol, obfuscations: Set<String> = ["none"]) {
      self.discoveryProtocol = discoveryProtocol
      self.obfuscations = obfuscations
    }
  }

  package var preference: KapeProtocolPreference
  /// Those whose support is linked.
  package var supported: [Support]
  package var plan: EndpointPlan
  /// Whether Lightway goes by a proxy, and nothing else is tried.
  package var usesProxy: Bool
  /// Round trips to servers.
  package var latencies: [IPAddress: Duration]
  /// Tried before: they come last within their step, so that another round is another choice.
  package var tried: Set<DiscoveredEndpoint.Identity>

  package init(
    preference: KapeProtocolPreference = .automatic, supported: [Support], plan: EndpointPlan = .backend,
    usesProxy: Bool = false, latencies: [IPAddress: Duration] = [:], tried: Set<DiscoveredEndpoint.Identity> = []
  ) {
    self.preference = preference
    self.supported = supported
    self.plan = plan
    self.usesProxy = usesProxy
    self.latencies = latencies
    self.tried = tried
  }

  /// What discovery is to be asked for.
  package var protocols: Set<DiscoveryProtocol> {
    let wanted = Set(supported.map(\.discoveryProtocol)).filter { preference.only == nil || preference.only == $0 }
    guard usesProxy else { return wanted }
    return wanted.contains(.lightway) ? [.lightway, .proxy] : []
  }

  /// What of a list can be used at all, without repeats, in the order of the list.
  package func usable(_ endpoints: [DiscoveredEndpoint]) -> [DiscoveredEndpoint] {
    let protocols = protocols
    let obfuscations = Dictionary(supported.map { ($0.discoveryProtocol, $0.obfuscations) }) { $0.union($1) }
    var seen: Set<DiscoveredEndpoint.Identity> = []
    return endpoints.filter { endpoint in
      guard protocols.contains(endpoint.discoveryProtocol) else { return false }
      if case .proxy = endpoint { return seen.insert(endpoint.identity).inserted }
      // A proxy takes TCP alone.
      if usesProxy && !endpoint.isTCP { return false }
      guard obfuscations[endpoint.discoveryProtocol]?.contains(endpoint.obfuscation) == true else { return false }
      return seen.insert(endpoint.identity).inserted
    }
  }

  package func candidates(_ endpoints: [DiscoveredEndpoint]) -> [EndpointCandidate] {
    let usable = usable(endpoints)
    let steps = plan.steps ?? Self.steps(usable)
    return steps.flatMap { step in
      let chosen = inOrder(usable.filter { EndpointPlan.Kind($0) == step.kind }).prefix(step.count)
      return candidates(Array(chosen), usable)
    }
  }

  private static func steps(_ endpoints: [DiscoveredEndpoint]) -> [EndpointPlan.Step] {
    var kinds: [EndpointPlan.Kind] = []
    for kind in endpoints.compactMap(EndpointPlan.Kind.init) where !kinds.contains(kind) { kinds.append(kind) }
    return kinds.map { EndpointPlan.Step($0, EndpointPlan.count($0)) }
  }

  private func inOrder(_ endpoints: [DiscoveredEndpoint]) -> [DiscoveredEndpoint] {
    let places = endpoints.enumerated().map { place, endpoint in
      (
        endpoint: endpoint,
        key: (
          tried.contains(endpoint.identity) ? 1 : 0, latencies[endpoint.address] ?? .seconds(Int64.max), place
        )
      )
    }
    return places.sorted { $0.key < $1.key }.map(\.endpoint)
  }

  /// Of one step. Lightway's are raced: all that are anchored to the same certificates, by each proxy.
  private func candidates(_ chosen: [DiscoveredEndpoint], _ usable: [DiscoveredEndpoint]) -> [EndpointCandidate] {
    var candidates: [EndpointCandidate] = []
    var races: [(anchor: String, endpoints: [DiscoveredEndpoint.Lightway])] = []
    for endpoint in chosen {
      switch endpoint {
      case .wireGuard(let endpoint): candidates.append(.wireGuard(endpoint))
      case .openVPN(let endpoint): candidates.append(.openVPN(endpoint))
      case .lightway(let endpoint):
        if let index = races.firstIndex(where: { $0.anchor == endpoint.caCertificate }) {
          races[index].endpoints.append(endpoint)
        } else {
          races.append((endpoint.caCertificate, [endpoint]))
        }
      case .proxy: break
      }
    }
    for race in races {
      guard usesProxy else {
        candidates.append(.lightway(race.endpoints, proxy: nil))
        continue
      }
      for case .proxy(let proxy) in inOrder(usable) { candidates.append(.lightway(race.endpoints, proxy: proxy)) }
    }
    return candidates
  }
}
