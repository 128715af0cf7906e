import KapePlatform
import Synchronization
import Testing

@Suite struct LightwayControllerTests {
  private struct Authenticator: PacketTunnelLightwayAuthenticator {
    let journal: Journal
    let answer: @Sendable () throws -> LightwayCredentials
    func credentials(for configuration: LightwayConfiguration) async throws -> LightwayCredentials {
      journal.add("credentials for \(configuration.endpoints.count)")
      return try answer()
    }
  }

  /// Endpoints are 192.0.2.0, .1, .2, …
  private struct Rig: Sendable {
    let time = SimulatedTime()
    let journal = Journal()
    let reporter = RecordingReporter()
    let system: ScriptedSystem
    let drivers = Drivers()
    let controller: LightwayConnectionController

    final class Drivers: Sendable {
      let all = Mutex<[ScriptedDriver]>([])
    }

    init(
      _ scripts: [Script], establishing: @escaping @Sendable () -> Script = { .succeed() },
      token: (@Sendable () async throws -> String)? = { "backend" },
      credentials: @escaping @Sendable () throws -> LightwayCredentials = { .token("own") }
    ) {
      let system = ScriptedSystem(time: time, journal: journal, establishing: establishing)
      self.system = system
      let (time, journal, drivers) = (time, journal, drivers)
      controller = LightwayConnectionController(
        systemTunnel: system, authenticator: Authenticator(journal: journal, answer: credentials),
        connectionToken: token, logger: SilentLogger(), tasks: TaskEnvironment(clock: time, executor: time)
      ) {
        let driver = ScriptedDriver(
          time: time, journal: journal,
          connecting: { what in
            let index = what.split(separator: " ")[1].split(separator: ".").last.flatMap { Int($0) } ?? 0
            return scripts[index]
          })
        drivers.all.withLock { $0.append(driver) }
        return driver
      }
      time.perform { [controller, reporter] in await controller.setAttemptReporter(reporter) }
    }

    static func configuration(_ count: Int) -> LightwayConfiguration {
      LightwayConfiguration(
        endpoints: (0..<count).map { LightwayEndpoint(ip: .v4(ipV4: "192.0.2.\($0)"), port: 443, certDn: "a.test") })
    }

    func connect(_ configuration: LightwayConfiguration) -> (any Error)? {
      time.perform { [controller] in try await controller.connect(configuration) }.failure
    }

    var told: [String] { reporter.journal.all }
    var stopped: Int { drivers.all.withLock { $0.count { $0.isStopped } } }
  }

  @Test("N4: the winner alone is told, with the time that it took; the others are stopped")
  func winner() {
    let rig = Rig([.succeed(after: .seconds(3)), .succeed(after: .seconds(1)), .wait])
    #expect(rig.connect(Rig.configuration(3)) == nil)
    #expect(rig.told == ["happened 192.0.2.1 connected in 1.5 seconds lightway-udp"])
    rig.time.run()
    #expect(rig.stopped == 2)
    #expect(rig.journal.count("attach to 192.0.2.1 with own") == 1)
  }

  @Test("The lowest index that is online wins: at once when all before it have failed, else after a short while")
  func lowestIndex() {
    let later = Rig([.succeed(after: .milliseconds(1400)), .succeed(after: .seconds(2)), .succeed(after: .seconds(1))])
    #expect(later.connect(Rig.configuration(3)) == nil)
    #expect(later.told == ["happened 192.0.2.0 connected in 1.4 seconds lightway-udp"])

    let failed = Rig([.fail(.handshakeFailed, after: .milliseconds(500)), .succeed(after: .seconds(1)), .wait])
    #expect(failed.connect(Rig.configuration(3)) == nil)
    #expect(failed.told == ["happened 192.0.2.1 connected in 1.0 seconds lightway-udp"])

    let together = Rig([.wait, .succeed(after: .seconds(1)), .succeed(after: .seconds(1))])
    #expect(together.connect(Rig.configuration(3)) == nil)
    #expect(together.told == ["happened 192.0.2.1 connected in 1.5 seconds lightway-udp"])

    let best = Rig([.succeed(after: .seconds(1)), .succeed(after: .seconds(1))])
    #expect(best.connect(Rig.configuration(2)) == nil)
    #expect(best.time.now == .seconds(1))
  }

  @Test("N4: when none is online in time every candidate failed")
  func totalTimeout() {
    let rig = Rig([.wait, .never, .fail(.handshakeFailed)])
    #expect(rig.connect(Rig.configuration(3)) as? PacketTunnelError == .connectTimeout)
    #expect(rig.time.now == .seconds(10))
    #expect(rig.told == (0..<3).map { "happened 192.0.2.\($0) failed connectTimeout in 10.0 seconds -" })
    #expect(rig.stopped == 3)
  }

  @Test("N4: cancelled while it connects, every candidate was cancelled")
  func cancelled() {
    let rig = Rig([.wait, .wait])
    let task = rig.time.spawn { [controller = rig.controller] in
      try? await controller.connect(Rig.configuration(2))
    }
    rig.time.run(for: .seconds(2))
    task.cancel()
    rig.time.run()
    #expect(rig.told == (0..<2).map { "happened 192.0.2.\($0) cancelled in 2.0 seconds -" })
    #expect(rig.stopped == 2)
  }

  @Test("N4: of any other error nothing is told")
  func otherErrors() {
    struct Refused: Error {}
    let allFailed = Rig([.fail(.handshakeFailed), .fail(.network("refused"), after: .seconds(1))])
    #expect(allFailed.connect(Rig.configuration(2)) as? PacketTunnelError == .network("refused"))
    let refused = Rig([.succeed()], credentials: { throw Refused() })
    #expect(refused.connect(Rig.configuration(1)) as? PacketTunnelError == .authenticationFailed("Refused()"))
    let noInterface = Rig([.succeed()], establishing: { .fail(.tunnelSetupFailed("x")) })
    #expect(noInterface.connect(Rig.configuration(1)) as? PacketTunnelError == .tunnelSetupFailed("x"))
    let nobody = Rig([])
    #expect(nobody.connect(Rig.configuration(0)) as? PacketTunnelError == .noConfiguration)
    for rig in [allFailed, refused, noInterface, nobody] { #expect(rig.told == []) }
    noInterface.time.run()
    #expect(noInterface.stopped == 1)
  }

  @Test("A2: credentials are asked for once a group and are those of every endpoint of it")
  func oncePerGroup() {
    let rig = Rig([.wait, .wait, .succeed(after: .seconds(1))])
    #expect(rig.connect(Rig.configuration(3)) == nil)
    #expect(
      rig.journal.all.prefix(4) == [
        "credentials for 3", "driver to 192.0.2.0 with own", "driver to 192.0.2.1 with own",
        "driver to 192.0.2.2 with own",
      ])
  }

  @Test(
    "A5: empty credentials are a failure at once",
    arguments: [
      LightwayCredentials.token(""), .usernamePassword(username: "", password: "x"),
      .usernamePassword(username: "x", password: ""),
    ])
  func empty(credentials: LightwayCredentials) {
    let rig = Rig([.succeed()], credentials: { credentials })
    #expect(rig.connect(Rig.configuration(1)) as? PacketTunnelError == .emptyCredentials)
    #expect(rig.journal.all == ["credentials for 1"])
  }

  @Test("A6: for a dedicated IP its own token is used, and for a tokenAuth proxy the backend's; nobody else is asked")
  func otherTokens() {
    var dedicated = Rig.configuration(1)
    dedicated.dedicatedIPToken = "dedicated"
    dedicated.proxy = LightwayProxy(host: "proxy.test", port: 443, authentication: .tokenAuth)
    let first = Rig([.succeed()])
    #expect(first.connect(dedicated) == nil)
    #expect(first.journal.all.first == "driver to 192.0.2.0 with dedicated")

    var proxied = Rig.configuration(1)
    proxied.proxy = LightwayProxy(host: "proxy.test", port: 443, authentication: .tokenAuth)
    let second = Rig([.succeed()])
    #expect(second.connect(proxied) == nil)
    #expect(second.journal.all.first == "driver to 192.0.2.0 with backend")
    let without = Rig([.succeed()], token: nil)
    #expect((without.connect(proxied) as? PacketTunnelError)?.cause == .unsupportedConfiguration)

    proxied.proxy?.authentication = .basic(username: "a", password: "b")
    let third = Rig([.succeed()])
    #expect(third.connect(proxied) == nil)
    #expect(third.journal.all.first == "credentials for 1")
    #expect(proxied.isProxied && !Rig.configuration(1).isProxied)
  }

  @Test("Resolvers of the configuration go before those of the server")
  func resolvers() {
    var configuration = Rig.configuration(1)
    configuration.dnsServers = [.v4(ipV4: "10.1.1.1")]
    let rig = Rig([.succeed()])
    #expect(rig.connect(configuration) == nil)
    #expect(rig.system.settings?.dnsServers == [.v4(ipV4: "10.1.1.1")])
  }

  @Test("N5: in a session, protocol and obfuscation are those of the endpoint that won")
  func inSession() {
    let s = SimulatedSession { time, journal in
      var group = Rig.configuration(2)
      group.endpoints[0].obfuscation = "first"
      group.endpoints[1].obfuscation = "second"
      let controller = LightwayConnectionController(
        systemTunnel: ScriptedSystem(time: time, journal: journal),
        authenticator: Authenticator(journal: journal) { .token("own") }, connectionToken: nil, logger: SilentLogger(),
        tasks: TaskEnvironment(clock: time, executor: time)
      ) {
        ScriptedDriver(
          time: time, journal: journal,
          connecting: { $0.contains(".0 ") ? .fail(.handshakeFailed) : .succeed(after: .seconds(1)) })
      }
      return (ScriptedGenerator([.give(group)], time: time, journal: journal), [controller])
    }
    s.start()
    s.stop()
    #expect(s.analytics.trace == SessionAnalyticsTests.happyTrace)
    guard case .attemptEnd(let attempt) = s.analytics.events[3], case .connectionEnd(let end) = s.analytics.events[4]
    else { return #expect(Bool(false)) }
    #expect(end.effectiveProtocol == "lightway")
    #expect(end.effectiveObfuscation == "second")
    #expect(attempt.elapsedMs == 1000)
    #expect(attempt.endpoint == .init(host: "192.0.2.1", protocolDescription: "lightway-udp"))
  }

  @Test func noSecretInADescription() {
    var configuration = Rig.configuration(1)
    configuration.dedicatedIPToken = "SECRET"
    configuration.proxy = LightwayProxy(
      host: "proxy.test", port: 1, authentication: .basic(username: "SECRET", password: "SECRET"))
    var dumped = ""
    dump(configuration, to: &dumped)
    dump(LightwayCredentials.token("SECRET"), to: &dumped)
    #expect(!"\(configuration) \(String(reflecting: configuration)) \(dumped)".contains("SECRET"))
  }
}
