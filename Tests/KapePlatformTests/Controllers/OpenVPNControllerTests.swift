import KapePlatform
import Testing

@Suite struct OpenVPNControllerTests {
  private struct Authenticator: PacketTunnelOpenVPNAuthenticator {
    let journal: Journal
    let answer: @Sendable () throws -> OpenVPNCredentials
    func credentials(for configuration: OpenVPNConfiguration) async throws -> OpenVPNCredentials {
      journal.add("credentials for \(configuration.host)")
      return try answer()
    }
  }

  private struct Rig: Sendable {
    let time = SimulatedTime()
    let journal = Journal()
    let reporter = RecordingReporter()
    let system: ScriptedSystem
    let controller: OpenVPNConnectionController

    init(
      pushed: PacketTunnelInterfaceSettings = ScriptedDriver.settings(),
      connecting: @escaping @Sendable (String) -> Script = { _ in .succeed() },
      credentials: (@Sendable () throws -> OpenVPNCredentials)? = nil
    ) {
      let system = ScriptedSystem(time: time, journal: journal)
      self.system = system
      let (time, journal) = (time, journal)
      controller = OpenVPNConnectionController(
        systemTunnel: system, authenticator: credentials.map { Authenticator(journal: journal, answer: $0) },
        logger: SilentLogger(), tasks: TaskEnvironment(clock: time, executor: time)
      ) {
        ScriptedDriver(time: time, journal: journal, settings: pushed, connecting: connecting)
      }
      time.perform { [controller, reporter] in await controller.setAttemptReporter(reporter) }
    }

    func connect(dns: [String] = []) -> (any Error)? {
      let configuration = OpenVPNConfiguration(
        host: "192.0.2.1", port: 8080, transport: .udp, ovpnConfiguration: "cipher AES-128-GCM", username: "user",
        password: "word", dnsServers: dns)
      return time.perform { [controller] in try await controller.connect(configuration) }.failure
    }
  }

  @Test("A1, N3: credentials are asked for once an attempt, right before; one attempt a connect")
  func credentials() {
    let rig = Rig(credentials: { OpenVPNCredentials(username: "jwt-auth", password: "token") })
    #expect(rig.connect() == nil)
    #expect(
      rig.journal.all == [
        "credentials for 192.0.2.1", "driver to 192.0.2.1 as jwt-auth with token", "establish",
        "attach to 192.0.2.1 as jwt-auth with token",
      ])
    #expect(rig.reporter.journal.all == ["begin 192.0.2.1", "end 192.0.2.1 connected openvpn-udp"])
  }

  @Test("Without an authenticator the configuration's own are used")
  func own() {
    let rig = Rig()
    #expect(rig.connect() == nil)
    #expect(rig.journal.all.first == "driver to 192.0.2.1 as user with word")
  }

  @Test("A3: what the authenticator throws ends the attempt, without a packet")
  func refused() {
    struct Refused: Error {}
    let rig = Rig(credentials: { throw Refused() })
    #expect(rig.connect() as? PacketTunnelError == .authenticationFailed("Refused()"))
    #expect(rig.journal.all == ["credentials for 192.0.2.1"])
  }

  @Test("A5: an empty name or password is a failure at once", arguments: [("", "x"), ("x", ""), ("", "")])
  func empty(name: String, password: String) {
    let rig = Rig(credentials: { OpenVPNCredentials(username: name, password: password) })
    #expect(rig.connect() as? PacketTunnelError == .emptyCredentials)
    #expect(rig.journal.all == ["credentials for 192.0.2.1"])
    #expect(rig.reporter.journal.all.last == "end 192.0.2.1 failed emptyCredentials -")
  }

  @Test("§9: 10 s to connect, and nothing is left after it")
  func timeout() {
    let rig = Rig(connecting: { _ in .wait })
    #expect(rig.connect() as? PacketTunnelError == .connectTimeout)
    #expect(rig.time.now == .seconds(10))
    #expect(rig.journal.all.last == "end to 192.0.2.1 as user with word")
  }

  @Test("§9: resolvers are the configuration's, else what the server pushes, else the gateway")
  func resolvers() {
    let pushed = ScriptedDriver.settings(dns: [.v4(ipV4: "10.8.0.1")])
    let listed = Rig(pushed: pushed)
    #expect(listed.connect(dns: ["10.1.1.1"]) == nil)
    #expect(listed.system.settings?.dnsServers == [.v4(ipV4: "10.1.1.1")])
    let byServer = Rig(pushed: pushed)
    #expect(byServer.connect() == nil)
    #expect(byServer.system.settings?.dnsServers == [.v4(ipV4: "10.8.0.1")])
    var gateway = ScriptedDriver.settings()
    gateway.gateway = .v4(ipV4: "10.8.0.9")
    let fallback = Rig(pushed: gateway)
    #expect(fallback.connect() == nil)
    #expect(fallback.system.settings?.dnsServers == [.v4(ipV4: "10.8.0.9")])
  }

  @Test func noSecretInADescription() {
    let configuration = OpenVPNConfiguration(
      host: "192.0.2.1", port: 1, transport: .tcp, ovpnConfiguration: "SECRET", password: "SECRET", clientKey: "SECRET",
      tlsAuthKey: "SECRET")
    var dumped = ""
    dump(configuration, to: &dumped)
    dump(OpenVPNCredentials(username: "a", password: "SECRET"), to: &dumped)
    #expect(!"\(configuration) \(String(reflecting: configuration)) \(dumped)".contains("SECRET"))
    #expect(configuration.obfuscationDescription == "none")
    #expect(
      OpenVPNConfiguration(host: "", port: 1, transport: .udp, ovpnConfiguration: "", xorValue: 7)
        .obfuscationDescription == "xor")
  }
}

extension Optional where Wrapped == Result<Void, any Error> {
  var failure: (any Error)? { if case .failure(let error) = self { error } else { nil } }
}
