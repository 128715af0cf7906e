import KapeProtocols
import KapeTestSupport
import Testing

@testable import KapePlatform

@Suite("Endpoint order") struct EndpointOrderTests {
  private let all = EndpointOrder.Support.all

  private func brief(_ order: EndpointOrder, _ endpoints: [DiscoveredEndpoint]) -> [String] {
    order.candidates(endpoints).map(\.brief)
  }

  @Test("§5.5: without a measurement the backend's pecking order is kept, in each kind and among the kinds")
  func peckingOrder() throws {
    let endpoints = [
      try Sample.openVPN("192.0.2.1", .udp), try Sample.wireGuard("192.0.2.3"), try Sample.wireGuard("192.0.2.2"),
      try Sample.openVPN("192.0.2.1", .tcp),
    ]
    #expect(
      brief(EndpointOrder(supported: all), endpoints) == [
        "openvpn-udp 192.0.2.1", "wireguard 192.0.2.3", "wireguard 192.0.2.2", "openvpn-tcp 192.0.2.1",
      ])
  }

  @Test("§5.5: each step takes its first endpoints over servers by latency before the next step, unmeasured ones last")
  func stepsByLatency() throws {
    let servers = (1...5).map { "192.0.2.\($0)" }
    let endpoints = try servers.flatMap {
      [try Sample.wireGuard($0), try Sample.openVPN($0, .udp), try Sample.openVPN($0, .tcp)]
    }
    let order = EndpointOrder(
      supported: all,
      latencies: [
        try address("192.0.2.4"): .milliseconds(10), try address("192.0.2.2"): .milliseconds(30),
        try address("192.0.2.5"): .milliseconds(20),
      ])
    #expect(
      brief(order, endpoints) == [
        "wireguard 192.0.2.4", "wireguard 192.0.2.5", "wireguard 192.0.2.2",
        "openvpn-udp 192.0.2.4", "openvpn-udp 192.0.2.5",
        "openvpn-tcp 192.0.2.4", "openvpn-tcp 192.0.2.5", "openvpn-tcp 192.0.2.2",
      ])
    #expect(
      brief(EndpointOrder(supported: all, latencies: [try address("192.0.2.5"): .milliseconds(20)]), endpoints).prefix(
        3)
        == ["wireguard 192.0.2.5", "wireguard 192.0.2.1", "wireguard 192.0.2.2"])
  }

  @Test("§5.5: an endpoint that is named twice counts once")
  func distinct() throws {
    let one = try Sample.wireGuard("192.0.2.1")
    let other = try Sample.wireGuard("192.0.2.1", port: 443)
    #expect(
      EndpointOrder(supported: all).candidates([one, one, other, one, try Sample.wireGuard("192.0.2.2")])
        .flatMap(\.endpoints) == [one, other, try Sample.wireGuard("192.0.2.2")])
  }

  @Test("§5.5: the normal plan: WireGuard three, OpenVPN by UDP two, by TCP three, whatever the backend names first")
  func normalPlan() throws {
    let endpoints = try (1...4).flatMap { number in
      let ip = "192.0.2.\(number)"
      return [
        try Sample.openVPN(ip, .tcp), try Sample.openVPN(ip, .udp), try Sample.wireGuard(ip),
        try Sample.wireGuard(ip, obfuscation: "amnezia"),
      ]
    }
    let order = EndpointOrder(
      supported: [.init(.wireguard, obfuscations: ["none", "amnezia"]), .init(.openvpn)], plan: .normal)
    #expect(
      brief(order, endpoints) == [
        "wireguard 192.0.2.1", "wireguard 192.0.2.2", "wireguard 192.0.2.3",
        "openvpn-udp 192.0.2.1", "openvpn-udp 192.0.2.2",
        "openvpn-tcp 192.0.2.1", "openvpn-tcp 192.0.2.2", "openvpn-tcp 192.0.2.3",
      ])
    #expect(order.candidates(endpoints).flatMap(\.endpoints).allSatisfy { $0.obfuscation == "none" })
  }

  @Test("§5.5: the plan against censorship: what hides itself three, WireGuard three, TCP two, UDP two")
  func censorshipPlan() throws {
    let endpoints = try (1...4).flatMap { number in
      let ip = "192.0.2.\(number)"
      return [
        try Sample.openVPN(ip, .udp), try Sample.openVPN(ip, .tcp), try Sample.wireGuard(ip),
        try Sample.wireGuard(ip, port: 1338, obfuscation: "amnezia"),
      ]
    }
    let order = EndpointOrder(
      supported: [.init(.wireguard, obfuscations: ["none", "amnezia"]), .init(.openvpn)], plan: .censorship)
    let chosen = order.candidates(endpoints).flatMap(\.endpoints)
    #expect(chosen.map(\.obfuscation) == ["amnezia", "amnezia", "amnezia"] + Array(repeating: "none", count: 7))
    #expect(
      brief(order, endpoints).suffix(4) == [
        "openvpn-tcp 192.0.2.1", "openvpn-tcp 192.0.2.2", "openvpn-udp 192.0.2.1", "openvpn-udp 192.0.2.2",
      ])
  }

  @Test("Only protocols whose support is linked are asked for and kept")
  func linkedOnly() throws {
    let endpoints = [
      try Sample.lightway("192.0.2.1"), try Sample.wireGuard("192.0.2.1"), try Sample.openVPN("192.0.2.1", .udp),
    ]
    let order = EndpointOrder(supported: [.init(.wireguard)])
    #expect(order.protocols == [.wireguard])
    #expect(brief(order, endpoints) == ["wireguard 192.0.2.1"])
    #expect(EndpointOrder(supported: []).protocols.isEmpty)
    #expect(EndpointOrder(supported: all).protocols.list == "lightway,openvpn,wireguard")
  }

  @Test("A protocol that was chosen is the only one; automatic takes all, and TCP follows UDP in the same round")
  func preference() throws {
    let endpoints = [
      try Sample.lightway("192.0.2.1"), try Sample.lightway("192.0.2.1", .tcp), try Sample.wireGuard("192.0.2.1"),
      try Sample.openVPN("192.0.2.1", .udp), try Sample.openVPN("192.0.2.1", .tcp),
    ]
    func brief(_ preference: KapeProtocolPreference) -> [String] {
      self.brief(EndpointOrder(preference: preference, supported: all), endpoints)
    }
    #expect(brief(.wireguard) == ["wireguard 192.0.2.1"])
    #expect(brief(.openvpn) == ["openvpn-udp 192.0.2.1", "openvpn-tcp 192.0.2.1"])
    #expect(brief(.lightway) == ["lightway-udp 192.0.2.1", "lightway-tcp 192.0.2.1"])
    #expect(
      brief(.automatic) == [
        "lightway-udp 192.0.2.1", "lightway-tcp 192.0.2.1", "wireguard 192.0.2.1", "openvpn-udp 192.0.2.1",
        "openvpn-tcp 192.0.2.1",
      ])
    #expect(EndpointOrder(preference: .openvpn, supported: [.init(.wireguard)]).protocols.isEmpty)
  }

  @Test("Lightway endpoints of a transport are one configuration to race, as many as share their anchor, four at most")
  func races() throws {
    let other = somePEM + somePEM
    let endpoints = [
      try Sample.lightway("192.0.2.1"), try Sample.lightway("192.0.2.2", anchor: other),
      try Sample.lightway("192.0.2.3"), try Sample.lightway("192.0.2.1", .tcp), try Sample.lightway("192.0.2.4"),
      try Sample.lightway("192.0.2.5"),
    ]
    #expect(
      brief(EndpointOrder(supported: all), endpoints) == [
        "lightway-udp 192.0.2.1+192.0.2.3+192.0.2.4", "lightway-udp 192.0.2.2", "lightway-tcp 192.0.2.1",
      ])
  }

  @Test("By a proxy goes Lightway over TCP, once for each proxy, and nothing else")
  func proxies() throws {
    let endpoints = [
      try Sample.wireGuard("192.0.2.1"), try Sample.lightway("192.0.2.1"), try Sample.lightway("192.0.2.1", .tcp),
      try Sample.proxy("192.0.2.8"), try Sample.proxy("192.0.2.9"), try Sample.proxy("192.0.2.8"),
    ]
    let order = EndpointOrder(supported: all, usesProxy: true)
    #expect(order.protocols == [.lightway, .proxy])
    #expect(
      brief(order, endpoints) == ["lightway-tcp 192.0.2.1 by 192.0.2.8", "lightway-tcp 192.0.2.1 by 192.0.2.9"])
    #expect(EndpointOrder(supported: [.init(.wireguard)], usesProxy: true).protocols.isEmpty)
    #expect(brief(EndpointOrder(supported: all), endpoints).allSatisfy { !$0.contains(" by ") })
  }

  @Test("What hides itself in a way that is not supported is left out")
  func obfuscations() throws {
    let endpoints = [
      try Sample.wireGuard("192.0.2.1", obfuscation: "amnezia"),
      try Sample.openVPN("192.0.2.1", .udp, obfuscation: "xor"),
    ]
    #expect(brief(EndpointOrder(supported: all), endpoints) == [])
    #expect(
      brief(EndpointOrder(supported: [.init(.openvpn, obfuscations: ["none", "xor"])]), endpoints)
        == ["openvpn-udp 192.0.2.1"])
  }

  @Test("What was tried comes last in its step, so that another round is another choice")
  func tried() throws {
    let endpoints = try (1...5).map { try Sample.wireGuard("192.0.2.\($0)") }
    let first = EndpointOrder(supported: all, latencies: [try address("192.0.2.1"): .milliseconds(1)])
    let tried = Set(first.candidates(endpoints).flatMap(\.endpoints).map(\.identity))
    var second = first
    second.tried = tried
    #expect(brief(second, endpoints) == ["wireguard 192.0.2.4", "wireguard 192.0.2.5", "wireguard 192.0.2.1"])
  }

  @Test("Whatever the list: nothing is named that was not in it, nothing twice, and the answer is the same again")
  func anyList() throws {
    for seed in 0..<2000 as Range<UInt64> {
      var random = SeededGenerator(seed: seed)
      let endpoints = try (0..<random.below(30)).map { _ in try anyEndpoint(&random) }
      var latencies: [IPAddress: Duration] = [:]
      for number in 1...9 where random.chance(2) {
        latencies[try address("192.0.2.\(number)")] = .milliseconds(random.below(5))
      }
      let order = EndpointOrder(
        preference: KapeProtocolPreference.allCases.randomElement(using: &random) ?? .automatic,
        supported: all.filter { _ in !random.chance(4) },
        plan: [.backend, .normal, .censorship].randomElement(using: &random) ?? .backend,
        usesProxy: random.chance(4), latencies: latencies,
        tried: Set(endpoints.filter { _ in random.chance(3) }.map(\.identity)))
      let candidates = order.candidates(endpoints)
      #expect(candidates == order.candidates(endpoints), "seed \(seed)")
      let chosen = candidates.flatMap(\.endpoints)
      #expect(Set(chosen).isSubset(of: endpoints), "seed \(seed)")
      #expect(chosen.allSatisfy { order.protocols.contains($0.discoveryProtocol) }, "seed \(seed)")
      #expect(Set(candidates).count == candidates.count, "seed \(seed)")
      if !order.usesProxy { #expect(Set(chosen.map(\.identity)).count == chosen.count, "seed \(seed)") }
      // Within one kind, faster ones that are as fresh never come after slower ones.
      for kind in Set(chosen.compactMap(EndpointPlan.Kind.init)) where !order.usesProxy && !isLightway(kind) {
        let keys = chosen.filter { EndpointPlan.Kind($0) == kind }.map { endpoint in
          (order.tried.contains(endpoint.identity) ? 1 : 0, latencies[endpoint.address] ?? .seconds(99))
        }
        #expect(zip(keys, keys.dropFirst()).allSatisfy { $0 <= $1 }, "seed \(seed)")
      }
    }
  }

  private func isLightway(_ kind: EndpointPlan.Kind) -> Bool {
    if case .lightway = kind { true } else { false }
  }

  private func anyEndpoint(_ random: inout SeededGenerator) throws -> DiscoveredEndpoint {
    let ip = "192.0.2.\(1 + random.below(9))"
    return switch random.below(6) {
    case 0: try Sample.wireGuard(ip)
    case 1: try Sample.openVPN(ip, .udp)
    case 2: try Sample.openVPN(ip, .tcp)
    case 3: try Sample.lightway(ip, random.chance(2) ? .udp : .tcp)
    case 4: try Sample.lightway(ip, .tcp, anchor: somePEM + somePEM)
    default: try Sample.proxy(ip)
    }
  }
}

extension EndpointOrder.Support {
  static let all = [Self(.lightway), Self(.wireguard), Self(.openvpn)]
}
