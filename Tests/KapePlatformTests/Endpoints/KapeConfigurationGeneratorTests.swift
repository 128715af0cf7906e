import Foundation
import KapeProtocols
import Testing

@testable import KapePlatform

@Suite("The default generator") struct KapeConfigurationGeneratorTests {
  private let folder: ScratchFolder
  private let container: SharedContainer
  private let directory = ScriptedEndpoints()
  private let time = ManualTime()
  private let log = LogLines()
  private let wishes = Changing(TunnelWishes())
  private let automatic = Changing<String?>("fr")
  private let dedicatedToken = Changing<String?>(nil)
  private let path = Changing(UnderlayPath.unknown)

  init() throws {
    let made = try ScratchFolder()
    folder = made
    container = try SharedContainer(group: "g", home: nil) { $0 == "KAPE_STATE_HOME" ? made.path : nil }
    directory.set("fr", try Sample.wireGuard("192.0.2.1"), try Sample.openVPN("192.0.2.1", .udp))
    directory.set("de", try Sample.wireGuard("192.0.2.50"))
  }

  private typealias Linked = KapeConfigurationGenerator.Linked

  private func generator(_ linked: [Linked] = EndpointOrder.Support.all.map { Linked($0) })
    -> KapeConfigurationGenerator
  {
    let repository = KapeEndpointRepository(
      container: container, directory: directory, latency: ScriptedLatency(), clock: time, logger: log)
    return KapeConfigurationGenerator(
      GeneratorEnvironment(
        appGroupIdentifier: "group.example", linked: linked, repository: repository, directory: directory, clock: time,
        logger: log, wishes: { [wishes] in wishes.value }, automaticLocation: { [automatic] in automatic.value },
        dedicatedIPToken: { [dedicatedToken] in dedicatedToken.value }, path: { [path] in path.value }))
  }

  private func next(_ generator: KapeConfigurationGenerator) async throws -> String? {
    switch try await generator.nextConfiguration() {
    case let configuration as KapeWireGuardConfig: "wireguard \(configuration.host)"
    case let configuration as OpenVPNConfiguration: "openvpn-\(configuration.transport) \(configuration.host)"
    case let configuration as LightwayConfiguration:
      "lightway " + configuration.endpoints.map { "\($0.ip)" }.joined(separator: "+")
    case nil: nil
    case let other?: "\(other)"
    }
  }

  /// As many as come until one is nil.
  private func round(_ generator: KapeConfigurationGenerator) async throws -> [String] {
    var all: [String] = []
    while let one = try await next(generator) { all.append(one) }
    return all
  }

  @Test("G1: one configuration a call, each the next in order")
  func oneByOne() async throws {
    let generator = generator()
    #expect(try await next(generator) == "wireguard 192.0.2.1")
    #expect(try await next(generator) == "openvpn-udp 192.0.2.1")
  }

  @Test("G2, G3: a round that was tried ends with nil, then the backend is asked anew")
  func rounds() async throws {
    let generator = generator()
    #expect(try await round(generator) == ["wireguard 192.0.2.1", "openvpn-udp 192.0.2.1"])
    directory.set("fr", try Sample.wireGuard("192.0.2.9"))
    time.advance(by: .seconds(30))
    #expect(try await round(generator) == ["wireguard 192.0.2.9"])
    #expect(directory.questions.count == 2)
    #expect(Set(directory.questions) == [.init(location: "fr", protocols: "lightway,openvpn,wireguard")])
  }

  @Test("another round is another choice, until all were tried")
  func otherChoice() async throws {
    let many = try (1...5).map { try Sample.wireGuard("192.0.2.\($0)") }
    directory.set("fr", many[0], many[1], many[2], many[3], many[4])
    let generator = generator()
    #expect(try await round(generator) == [1, 2, 3].map { "wireguard 192.0.2.\($0)" })
    #expect(try await round(generator) == [4, 5, 1].map { "wireguard 192.0.2.\($0)" })
    #expect(try await round(generator) == [1, 2, 3].map { "wireguard 192.0.2.\($0)" })
  }

  @Test("R10: what is left of a round is used on a drop; after a connection a new round follows at once, without nil")
  func afterConnection() async throws {
    let generator = generator()
    #expect(try await next(generator) == "wireguard 192.0.2.1")
    time.advance(by: .seconds(600))
    #expect(try await next(generator) == "openvpn-udp 192.0.2.1")
    time.advance(by: .seconds(60))
    #expect(try await next(generator) == "wireguard 192.0.2.1")
    time.advance(by: .seconds(59))
    #expect(try await round(generator) == ["openvpn-udp 192.0.2.1"])
  }

  @Test("what is left of a round is not used when it is older than an hour")
  func stale() async throws {
    let generator = generator()
    #expect(try await next(generator) == "wireguard 192.0.2.1")
    directory.set("fr", try Sample.wireGuard("192.0.2.9"))
    time.advance(by: .seconds(3600))
    #expect(try await next(generator) == "wireguard 192.0.2.9")
  }

  @Test("the location is the chosen one, or the automatic one; a new choice begins anew at once")
  func location() async throws {
    let generator = generator()
    #expect(try await next(generator) == "wireguard 192.0.2.1")
    wishes.value.mode = .manual(locationId: "de")
    #expect(try await next(generator) == "wireguard 192.0.2.50")
    wishes.value.mode = .auto
    automatic.value = "de"
    #expect(try await next(generator) == "wireguard 192.0.2.50")
    wishes.value.mode = .manual(locationId: "fr")
    wishes.value.preference = .openvpn
    wishes.value.dnsServers = ["10.0.0.53"]
    let configuration = try await generator.nextConfiguration() as? OpenVPNConfiguration
    #expect(configuration?.dnsServers == ["10.0.0.53"] && configuration?.appGroupIdentifier == "group.example")
  }

  @Test("a switch to the same location begins with its first endpoint again")
  func reset() async throws {
    let generator = generator()
    #expect(try await next(generator) == "wireguard 192.0.2.1")
    await generator.reset()
    #expect(try await next(generator) == "wireguard 192.0.2.1")
    #expect(directory.questions.count == 1)
  }

  @Test("a switch while the backend is asked: the new choice is what comes")
  func resetMeanwhile() async throws {
    let generator = generator()
    directory.hold { [wishes, directory] in
      directory.hold(nil)
      wishes.value.mode = .manual(locationId: "de")
      await generator.reset()
    }
    #expect(try await next(generator) == "wireguard 192.0.2.50")
  }

  @Test("G4: failures are thrown as the session tells them, and pass")
  func failures() async throws {
    let generator = generator()
    directory.fail("fr", DiscoveryError.network("no route"))
    await #expect(throws: PacketTunnelError.network("no route")) { try await generator.nextConfiguration() }
    directory.fail("fr", DiscoveryError.unknownLocation("fr"))
    await #expect(throws: PacketTunnelError.configurationFailed(DiscoveryError.unknownLocation("fr").description)) {
      try await generator.nextConfiguration()
    }
    directory.fail("fr", DiscoveryError.refusedToken)
    await #expect(throws: PacketTunnelError.authenticationFailed(DiscoveryError.refusedToken.description)) {
      try await generator.nextConfiguration()
    }
    directory.set("fr")
    await #expect(throws: PacketTunnelError.self) { try await generator.nextConfiguration() }
    automatic.value = nil
    await #expect(throws: PacketTunnelError.self) { try await generator.nextConfiguration() }
    automatic.value = "de"
    #expect(try await next(generator) == "wireguard 192.0.2.50")
  }

  @Test(
    "§16: what trying again cannot help ends a start",
    arguments: [PacketTunnelError.notSignedIn, .noSubscription, .invalidSettings("APIBaseURL")])
  func terminal(_ error: PacketTunnelError) async throws {
    directory.refuse(TerminalStartError(error))
    let thrown = await #expect(throws: TerminalStartError.self) { try await generator().nextConfiguration() }
    #expect(thrown?.error == error)
  }

  @Test("a protocol that is chosen and not linked ends a start; only linked ones are asked for")
  func linked() async throws {
    let wireGuardOnly = [Linked(.init(.wireguard))]
    #expect(try await round(generator(wireGuardOnly)) == ["wireguard 192.0.2.1"])
    #expect(directory.questions.last?.protocols == "wireguard")
    wishes.value.preference = .openvpn
    let thrown = await #expect(throws: TerminalStartError.self) {
      try await generator(wireGuardOnly).nextConfiguration()
    }
    #expect(thrown?.error == .protocolNotBundled)
    #expect(directory.questions.count == 1)
  }

  @Test("G5, A1: authorized right before it is handed out, once for each")
  func authorized() async throws {
    let calls = Changing([String]())
    let generator = generator([
      Linked(.init(.wireguard)) { configuration, _ in
        var configuration = try #require(configuration as? KapeWireGuardConfig)
        calls.value.append(configuration.host)
        configuration.endpointConfiguration.serverPublicKey = "key \(calls.value.count)"
        return configuration
      },
      Linked(.init(.openvpn)),
    ])
    let first = try await generator.nextConfiguration() as? KapeWireGuardConfig
    #expect(first?.endpointConfiguration.serverPublicKey == "key 1")
    #expect(calls.value == ["192.0.2.1"])
    #expect(try await next(generator) == "openvpn-udp 192.0.2.1")
    #expect(calls.value == ["192.0.2.1"])
  }

  @Test(
    "A3: one that cannot be authorized is skipped, and the next is tried; A4: when none can, the last error is thrown")
  func notAuthorized() async throws {
    struct Refusal: Error, Equatable { var host: String }
    let refused = Changing<Set<String>>(["192.0.2.1"])
    directory.set("fr", try Sample.wireGuard("192.0.2.1"), try Sample.wireGuard("192.0.2.2"))
    let generator = generator([
      Linked(.init(.wireguard)) { configuration, _ in
        let host = (configuration as? KapeWireGuardConfig)?.host ?? ""
        if refused.value.contains(host) { throw Refusal(host: host) }
        return configuration
      }
    ])
    #expect(try await round(generator) == ["wireguard 192.0.2.2"])
    refused.value.insert("192.0.2.2")
    await #expect(throws: Refusal(host: "192.0.2.2")) { try await generator.nextConfiguration() }
    refused.value = []
    #expect(try await round(generator) == ["wireguard 192.0.2.1", "wireguard 192.0.2.2"])
    #expect(log.contains("warning: [generator] skipped, not authorized"))
  }

  @Test("cancelled it throws that, and skips nothing")
  func cancelled() async throws {
    let generator = generator([Linked(.init(.wireguard)) { _, _ in throw CancellationError() }])
    await #expect(throws: CancellationError.self) { try await generator.nextConfiguration() }
  }

  @Test("nat64_roundtrip: addresses are those of the network at that moment; what has no way is passed over")
  func paths() async throws {
    directory.set(
      "fr", try Sample.wireGuard("192.0.2.1"), try Sample.wireGuard("2001:db8::1"),
      try Sample.openVPN("192.0.2.1", .udp))
    let generator = generator()
    let prefix = try #require(IPPrefix("64:ff9b::/96"))
    path.value = UnderlayPath(hasIPv4: false, hasIPv6: true, nat64: NAT64Prefix(prefix))
    #expect(try await next(generator) == "wireguard 64:ff9b::c000:201")
    path.value = UnderlayPath(hasIPv4: true, hasIPv6: false)
    #expect(try await next(generator) == "openvpn-udp 192.0.2.1")
    path.value = UnderlayPath(hasIPv4: true, hasIPv6: true)
    #expect(try await next(generator) == nil)
    #expect(try await round(generator) == ["wireguard 192.0.2.1", "wireguard 2001:db8::1", "openvpn-udp 192.0.2.1"])
    path.value = UnderlayPath(hasIPv4: false, hasIPv6: false)
    await #expect(throws: PacketTunnelError.network("this network has no way to the servers' addresses")) {
      try await generator.nextConfiguration()
    }
  }

  // MARK: Dedicated IP

  private func dedicated(_ token: String = "access") throws -> DedicatedIP {
    DedicatedIP(
      locationId: "fr", expiresAt: Date(timeIntervalSince1970: 1_800_000_000), accessToken: token,
      endpoints: [try Sample.lightway("192.0.2.77")])
  }

  @Test("A6: a dedicated IP goes by Lightway with its own token, and no authenticator is asked")
  func dedicatedIP() async throws {
    wishes.value.usesDedicatedIP = true
    wishes.value.usesProxy = true
    dedicatedToken.value = "mine"
    directory.set(dedicated: .success(try dedicated()))
    let generator = generator([
      Linked(.init(.wireguard)),
      Linked(.init(.lightway)) { configuration, _ in
        Issue.record("asked")
        return configuration
      },
    ])
    let configuration = try await generator.nextConfiguration() as? LightwayConfiguration
    #expect(configuration?.dedicatedIPToken == "access")
    #expect(configuration?.endpoints.map(\.ip) == [.v4(ipV4: "192.0.2.77")])
    #expect(configuration?.proxy == nil)
    #expect(directory.dedicatedTokens == ["mine"] && directory.questions.isEmpty)
    #expect(try await generator.nextConfiguration() == nil)
  }

  @Test("A6: by a proxy with the connection token no authenticator is asked; by an open one it is")
  func proxy() async throws {
    wishes.value.usesProxy = true
    directory.set(
      "fr", try Sample.lightway("192.0.2.1", .tcp), try Sample.proxy("192.0.2.8"),
      try Sample.proxy("192.0.2.9", authentication: .none))
    let asked = Changing([String]())
    let generator = generator([
      Linked(.init(.lightway)) { configuration, _ in
        asked.value.append((configuration as? LightwayConfiguration)?.proxy?.host ?? "none")
        return configuration
      }
    ])
    #expect(try await round(generator).count == 2)
    #expect(asked.value == ["192.0.2.9"])
    #expect(directory.questions.last?.protocols == "lightway,proxy")
  }

  @Test("a dedicated IP's token is fetched anew for each round, and after a connection")
  func dedicatedIPAgain() async throws {
    wishes.value.usesDedicatedIP = true
    dedicatedToken.value = "mine"
    var two = try dedicated()
    two.endpoints.append(try Sample.lightway("192.0.2.77", .tcp))
    directory.set(dedicated: .success(two))
    let generator = generator()
    #expect(try await next(generator) == "lightway 192.0.2.77")
    time.advance(by: .seconds(61))
    two.accessToken = "second"
    directory.set(dedicated: .success(two))
    let configuration = try await generator.nextConfiguration() as? LightwayConfiguration
    #expect(configuration?.dedicatedIPToken == "second")
    #expect(directory.dedicatedTokens.count == 2)
  }

  @Test("§6.4: a dedicated IP with another protocol, without a token, expired, or not entitled ends a start")
  func dedicatedIPRefused() async throws {
    func thrown(_ linked: [Linked] = EndpointOrder.Support.all.map { Linked($0) }) async -> PacketTunnelError? {
      do {
        _ = try await generator(linked).nextConfiguration()
        return nil
      } catch let error as TerminalStartError {
        return error.error
      } catch {
        Issue.record(error)
        return nil
      }
    }
    wishes.value.usesDedicatedIP = true
    #expect(await thrown() == .configurationFailed(DedicatedIPError.noToken.description))
    dedicatedToken.value = "mine"
    let unsupported = PacketTunnelError.unsupportedConfiguration(DedicatedIPError.unsupportedProtocol.description)
    #expect(await thrown([Linked(.init(.wireguard))]) == unsupported)
    wishes.value.preference = .wireguard
    #expect(await thrown() == unsupported)
    wishes.value.preference = .lightway
    directory.set(dedicated: .failure(DedicatedIPError.notEntitled))
    #expect(await thrown() == .noSubscription)
    directory.set(dedicated: .failure(DedicatedIPError.expired))
    #expect(await thrown() == .configurationFailed(DedicatedIPError.expired.description))
    directory.set(dedicated: .failure(DedicatedIPError.underMaintenance))
    await #expect(throws: PacketTunnelError.configurationFailed(DedicatedIPError.underMaintenance.description)) {
      try await generator().nextConfiguration()
    }
  }

  @Test(
    "remote_list_walk: asked without end it walks the whole list with a pause after each round, never the first alone")
  func walk() async throws {
    directory.set(
      "fr", try Sample.wireGuard("192.0.2.1"), try Sample.openVPN("192.0.2.1", .udp),
      try Sample.openVPN("192.0.2.1", .tcp))
    let generator = generator()
    var seen: [String: Int] = [:]
    var pauses = 0
    for _ in 0..<400 {
      if let one = try await next(generator) { seen[one, default: 0] += 1 } else { pauses += 1 }
      time.advance(by: .seconds(2))
    }
    #expect(seen == ["wireguard 192.0.2.1": 100, "openvpn-udp 192.0.2.1": 100, "openvpn-tcp 192.0.2.1": 100])
    #expect(pauses == 100)
    #expect(directory.questions.count <= 400 * 2 / 30 + 1)
  }
}
