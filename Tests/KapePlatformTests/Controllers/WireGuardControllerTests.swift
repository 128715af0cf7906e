import KapePlatform
import KapeProtocols
import Testing

struct ScriptedAuthenticator: PacketTunnelWireguardAuthenticator {
  static let key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

  let journal: Journal
  var change: @Sendable (inout WireguardEndpointConfiguration) async throws -> Void = { _ in }

  func authenticate(config: WireguardEndpointConfiguration) async throws -> WireguardEndpointConfiguration {
    journal.add("authenticate")
    var config = config
    config.serverPublicKey = Self.key
    config.clientPrivateKey = Self.key
    config.internalIp = "10.5.6.7"
    try await change(&config)
    return config
  }
}

@Suite struct WireGuardControllerTests {
  static func configuration(_ host: String = "192.0.2.1") -> KapeWireGuardConfig {
    KapeWireGuardConfig(
      endpointConfiguration: WireguardEndpointConfiguration(
        ip: IpAddress(host), port: 1337, authIp: IpAddress(host), authPort: 1337, certDn: "server.test"),
      host: host, port: 1337)
  }

  private struct Rig: Sendable {
    let time = SimulatedTime()
    let journal = Journal()
    let reporter = RecordingReporter()
    let system: ScriptedSystem
    let driver: ScriptedDriver
    let controller: KapeWireGuardController

    init(
      connecting: @escaping @Sendable (String) -> Script = { _ in .succeed() },
      establishing: @escaping @Sendable () -> Script = { .succeed() },
      authenticating: @escaping @Sendable (inout WireguardEndpointConfiguration) async throws -> Void = { _ in }
    ) {
      let system = ScriptedSystem(time: time, journal: journal, establishing: establishing)
      let driver = ScriptedDriver(time: time, journal: journal, connecting: connecting)
      self.system = system
      self.driver = driver
      controller = KapeWireGuardController(
        systemTunnel: system, authenticator: ScriptedAuthenticator(journal: journal, change: authenticating),
        logger: SilentLogger(), tasks: TaskEnvironment(clock: time, executor: time)
      ) { driver }
      time.perform { [controller, reporter] in await controller.setAttemptReporter(reporter) }
    }

    func connect(_ configuration: KapeWireGuardConfig = configuration()) -> (any Error)? {
      time.perform { [controller] in try await controller.connect(configuration) }.failure
    }
  }

  @Test("A1: keys are exchanged once an attempt, right before; the interface comes after the handshake")
  func order() {
    let rig = Rig()
    #expect(rig.connect() == nil)
    #expect(
      rig.journal.all == [
        "authenticate", "socket udp4", "driver to 192.0.2.1:1337", "establish", "attach to 192.0.2.1:1337",
      ])
    #expect(rig.reporter.journal.all == ["begin 192.0.2.1", "end 192.0.2.1 connected WireGuard"])
    let usage = Box<PacketTunnelDataUsage>()
    rig.time.perform { [controller = rig.controller] in usage.value = await controller.currentDataUsage() }
    #expect(usage.value?.bytesSent == 8)
  }

  @Test("A1, G5: a configuration that has keys already is connected with them")
  func authorizedBefore() async throws {
    let rig = Rig()
    let authorized = try await ScriptedAuthenticator(journal: Journal()).authorize(
      Self.configuration(), logger: SilentLogger())
    #expect(rig.connect(authorized) == nil)
    #expect(!rig.journal.all.contains("authenticate"))
  }

  @Test("A3, N3: what the authenticator throws ends the attempt, and there is one attempt a connect")
  func authenticatorThrows() {
    struct Refused: Error {}
    let rig = Rig(authenticating: { _ in throw Refused() })
    #expect(rig.connect() as? PacketTunnelError == .authenticationFailed("Refused()"))
    #expect(rig.journal.all == ["authenticate"])
    #expect(rig.reporter.journal.all == ["begin 192.0.2.1", "end 192.0.2.1 failed authenticationFailed -"])
  }

  @Test("A5: empty keys are a failure at once, without a packet")
  func emptyKeys() {
    let rig = Rig(authenticating: { $0.serverPublicKey = "" })
    #expect(rig.connect() as? PacketTunnelError == .emptyCredentials)
    #expect(rig.time.now == .zero)
    #expect(rig.journal.all == ["authenticate"])
  }

  @Test("§8: the handshake has 10 s; nothing of the machine's network was touched until then")
  func handshakeTimeout() {
    let rig = Rig(connecting: { _ in .wait })
    #expect(rig.connect() as? PacketTunnelError == .connectTimeout)
    #expect(rig.time.now == .seconds(10))
    #expect(!rig.journal.all.contains("establish"))
    #expect(rig.driver.isStopped)
  }

  @Test("§8: a connect that failed leaves no engine", arguments: [PacketTunnelError.handshakeFailed, .network("x")])
  func failure(error: PacketTunnelError) {
    let rig = Rig(connecting: { _ in .fail(error) })
    #expect(rig.connect() as? PacketTunnelError == error)
    #expect(rig.driver.isStopped)
    let end = rig.time.perform { [controller = rig.controller] in await controller.runVPN() }
    #expect(end != nil)
  }

  @Test("settings: an interface that is never set up ends the attempt after 10 s")
  func establishNever() {
    let rig = Rig(establishing: { .never })
    let error = rig.connect() as? PacketTunnelError
    #expect(error?.cause == .tunnelSetupFailed)
    #expect(rig.time.now == .seconds(10))
    #expect(rig.driver.isStopped)
    rig.time.runToEnd()
  }

  @Test("A cancelled connect is over at once, is told as cancelled, and leaves no engine")
  func cancelled() {
    let rig = Rig(connecting: { _ in .never })
    let task = rig.time.spawn { [controller = rig.controller] () -> Bool in
      do {
        try await controller.connect(Self.configuration())
        return false
      } catch { return error is CancellationError }
    }
    rig.time.run(for: .seconds(1))
    task.cancel()
    rig.time.run()
    #expect(rig.reporter.journal.all == ["begin 192.0.2.1", "end 192.0.2.1 cancelled -"])
    #expect(rig.driver.isStopped)
    #expect(rig.time.perform { await task.value }.value == true)
  }

  @Test("R6: stop may come at any time, any number of times, and lets runVPN return nil")
  func stops() {
    let rig = Rig()
    rig.time.perform { [controller = rig.controller] in await controller.stop() }
    #expect(rig.connect() == nil)
    let ended = Box<String>()
    rig.time.spawn { [controller = rig.controller] in ended.value = "\(String(describing: await controller.runVPN()))" }
    rig.time.run(for: .seconds(60))
    #expect(ended.value == nil)
    for _ in 0..<3 { rig.time.spawn { [controller = rig.controller] in await controller.stop() } }
    rig.time.run()
    #expect(ended.value == "nil")
    #expect(rig.journal.count("end to 192.0.2.1:1337") == 1)
  }

  @Test("A stop while it connects ends the connect as cancelled")
  func stopWhileConnecting() {
    let rig = Rig(connecting: { _ in .wait })
    let error = Box<any Error>()
    rig.time.spawn { [controller = rig.controller] in
      do { try await controller.connect(Self.configuration()) } catch let thrown { error.value = thrown }
    }
    rig.time.run(for: .seconds(1))
    rig.time.perform { [controller = rig.controller] in await controller.stop() }
    #expect(error.value is CancellationError)
    #expect(rig.time.now == .seconds(1))
  }

  @Test("What ends a connection comes out of runVPN")
  func ends() {
    let rig = Rig()
    #expect(rig.connect() == nil)
    let ended = Box<PacketTunnelError>()
    rig.time.spawn { [controller = rig.controller] in ended.value = await controller.runVPN() }
    rig.time.run()
    rig.driver.end(.connectionLost)
    rig.time.run()
    #expect(ended.value == .connectionLost)
  }

  @Test("§8: resolvers are those listed before, else the authenticator's, else derived from the address inside")
  func resolvers() {
    #expect(settings { _ in }?.dnsServers == [.v4(ipV4: "10.5.0.1")])
    #expect(settings { $0.dnsServers = [.v4(ipV4: "10.9.9.9")] }?.dnsServers == [.v4(ipV4: "10.9.9.9")])
    var listed = Self.configuration()
    listed.endpointConfiguration.dnsServers = [.v4(ipV4: "10.1.1.1"), .v6(ipV6: "fd00::1")]
    let both = settings(listed) { $0.dnsServers = [.v4(ipV4: "10.9.9.9")] }
    #expect(both?.dnsServers == [.v4(ipV4: "10.1.1.1"), .v6(ipV6: "fd00::1")])
  }

  private func settings(
    _ configuration: KapeWireGuardConfig = configuration(),
    _ change: @escaping @Sendable (inout WireguardEndpointConfiguration) -> Void
  ) -> PacketTunnelInterfaceSettings? {
    let rig = Rig(authenticating: { change(&$0) })
    #expect(rig.connect(configuration) == nil)
    return rig.system.settings
  }

  @Test("§8: without any resolver the connect fails", arguments: ["fd00::2", "fd00::2/128"])
  func noResolver(address: String) {
    let rig = Rig(authenticating: { $0.internalIp = address })
    #expect((rig.connect() as? PacketTunnelError)?.cause == .tunnelSetupFailed)
  }
}

@Suite struct WireGuardSetupTests {
  private func setup(
    _ change: (inout KapeWireGuardConfig) -> Void = { _ in }
  ) throws -> WireGuardSetup {
    var configuration = WireGuardControllerTests.configuration()
    configuration.endpointConfiguration.serverPublicKey = ScriptedAuthenticator.key
    configuration.endpointConfiguration.clientPrivateKey = ScriptedAuthenticator.key
    configuration.endpointConfiguration.internalIp = "10.5.6.7"
    change(&configuration)
    return try WireGuardSetup(configuration)
  }

  @Test("§8: everything goes in by default, and a keepalive every 15 s")
  func defaults() throws {
    let setup = try setup()
    let peer = try #require(setup.change.peers.first)
    #expect(setup.change.peers.count == 1 && setup.change.replacePeers)
    #expect(peer.persistentKeepalive == 15)
    #expect(peer.allowedIPs.map(\.prefix.description) == ["0.0.0.0/0", "::/0"])
    #expect(peer.presharedKey == nil)
    #expect(setup.settings.addresses.map(\.description) == ["10.5.6.7/32"])
    #expect(setup.settings.includedRoutes.map(\.description) == ["0.0.0.0/0", "::/0"])
    #expect(setup.settings.mtu == 1280)
    #expect(setup.settings.remoteAddress == .v4(ipV4: "192.0.2.1"))
  }

  @Test func addressesWithPrefixes() throws {
    let setup = try setup {
      $0.endpointConfiguration.internalIp = "10.5.6.7/16, fd00::2/64"
      $0.endpointConfiguration.gateway = .v4(ipV4: "10.5.0.1")
      $0.endpointConfiguration.presharedKey = ScriptedAuthenticator.key
    }
    #expect(setup.settings.addresses.map(\.description) == ["10.5.6.7/16", "fd00::2/64"])
    #expect(setup.settings.gateway == .v4(ipV4: "10.5.0.1"))
    #expect(setup.change.peers.first?.presharedKey != nil)
  }

  @Test func whatCannotBeUsedIsNamed() {
    let bad: [(KapeSessionEndCause, String, (inout KapeWireGuardConfig) -> Void)] = [
      (.unsupportedConfiguration, "amnezia", { $0.obfuscation = .amnezia(Self.amnezia) }),
      (.unsupportedConfiguration, "unknown", { $0.obfuscation = .unknown }),
      (.unsupportedConfiguration, "MTU of 100", { $0.mtu = 100 }),
      (.configurationFailed, "host", { $0.host = "server.test" }),
      (.configurationFailed, "port", { $0.port = 0 }),
      (.authenticationFailed, "server's key", { $0.endpointConfiguration.serverPublicKey = "short" }),
      (.authenticationFailed, "client's key", { $0.endpointConfiguration.clientPrivateKey = nil }),
      (.authenticationFailed, "preshared", { $0.endpointConfiguration.presharedKey = "x" }),
      (.authenticationFailed, "address inside", { $0.endpointConfiguration.internalIp = "10.5.6" }),
      (.authenticationFailed, "address inside", { $0.endpointConfiguration.internalIp = "10.5.6.7,x" }),
    ]
    for (cause, text, change) in bad {
      let error = #expect(throws: PacketTunnelError.self) { try setup(change) }
      #expect(error?.cause == cause)
      #expect(error?.description.contains(text) == true)
    }
  }

  private static let amnezia = WireguardObfuscation.AmneziaParameters(
    initPacketJunkSize: 1, responsePacketJunkSize: 1, junkPacketCount: 1, junkPacketMinSize: 1, junkPacketMaxSize: 2,
    initPacketMagicHeader: 5, responsePacketMagicHeader: 6, underloadPacketMagicHeader: 7,
    transportPacketMagicHeader: 8)
}

extension Optional where Wrapped == Result<Bool, any Error> {
  fileprivate var value: Bool? { try? self?.get() }
}
