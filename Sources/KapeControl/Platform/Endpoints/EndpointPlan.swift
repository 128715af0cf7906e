/// The steps in which a list of endpoints is gone through, and how many each takes.
package struct EndpointPlan: Hashable, Sendable {
  /// Endpoints that are tried one after the other, or raced, before those of another kind.
  package enum Kind: Hashable, Sendable {
    case wireGuard(obfuscated: Bool)
    case openVPN(OpenVPNTransport)
    case lightway(LightwayTransport)

    /// nil: not tried by itself.
    package init?(_ endpoint: DiscoveredEndpoint) {
      switch endpoint {
      case .wireGuard(let endpoint): self = .wireGuard(obfuscated: endpoint.obfuscation != "none")
      case .openVPN(let endpoint): self = .openVPN(endpoint.transport)
      case .lightway(let endpoint): self = .lightway(endpoint.transport)
      case .proxy: return nil
      }
    }
  }

  package struct Step: Hashable, Sendable {
    package var kind: Kind
    package var count: Int

    package init(_ kind: Kind, _ count: Int) {
      self.kind = kind
      self.count = count
    }
  }

  /// nil: the kinds in the order in which the backend first names them.
  package var steps: [Step]?

  package init(_ steps: [Step]?) { self.steps = steps }

  /// The backend's pecking order decides which kind comes before which.
  package static let backend = EndpointPlan(nil)

  /// A list of one's own, where nothing is blocked: UDP first, TCP to fall back on.
  package static let normal = EndpointPlan([
    Step(.lightway(.udp), raceLimit), Step(.wireGuard(obfuscated: false), 3), Step(.openVPN(.udp), 2),
    Step(.lightway(.tcp), raceLimit), Step(.openVPN(.tcp), 3),
  ])

  /// Where filters are to be reckoned with: what hides itself first, and TCP before UDP.
  package static let censorship = EndpointPlan([
    Step(.wireGuard(obfuscated: true), 3), Step(.lightway(.tcp), raceLimit), Step(.wireGuard(obfuscated: false), 3),
    Step(.openVPN(.tcp), 2), Step(.lightway(.udp), raceLimit), Step(.openVPN(.udp), 2),
  ])

  /// Of Lightway endpoints raced as one.
  package static let raceLimit = 4

  /// How many a step takes when the backend says in which order the steps come.
  static func count(_ kind: Kind) -> Int {
    switch kind {
    case .wireGuard: 3
    case .openVPN(.udp): 2
    case .openVPN(.tcp): 3
    case .lightway: raceLimit
    }
  }
}
