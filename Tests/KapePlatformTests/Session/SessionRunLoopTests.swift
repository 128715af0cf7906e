import KapePlatform
import Testing

@Suite struct SessionRunLoopTests {
  @Test("R2, R4, R8: session, connection and lock come before the first pull; a stop takes everything down in order")
  func happyPath() {
    let s = SimulatedSession(SimulatedSession.simple())
    #expect(s.start().isSuccess)
    #expect(s.journal.take() == ["status connecting", "lock", "pull", "c connect", "status connected", "c run"])
    #expect(s.observer.last.connectedEndpoint == .init(host: "192.0.2.1", protocolDescription: "WireGuard"))
    s.stop()
    #expect(s.journal.take() == ["status disconnecting", "c stop", "c stop", "close", "unlock", "status disconnected"])
    #expect(s.observer.last.endCause == .userInitiated)
    #expect(s.analytics.trace == SessionAnalyticsTests.happyTrace)
  }

  @Test("R3, A3: a failed attempt goes on to the next configuration, without a change of status or of the connection")
  func nextAfterFailure() {
    let s = SimulatedSession(
      SimulatedSession.simple(
        [.give(Endpoint("dead")), .give(Endpoint("alive"))],
        connecting: { endpoint, _ in endpoint.name == "dead" ? .fail(.connectTimeout) : .succeed() }))
    #expect(s.start().isSuccess)
    #expect(s.time.now == .zero)
    #expect(s.observer.statuses == [.disconnected, .connecting, .connected])
    #expect(
      s.analytics.trace == [
        "sBegin", "cBegin(initial)", "aBegin", "aEnd(failed connectTimeout)", "aBegin", "aEnd(connected)",
      ])
    #expect(!s.journal.all.contains("c stop"))
  }

  @Test("R4: a success takes the last error away and begins to count failures anew")
  func successResets() {
    let s = SimulatedSession(
      SimulatedSession.simple(
        [.fail(PacketTunnelError.network("x")), .nothing, .give(Endpoint("a")), .nothing, .give(Endpoint("b"))],
        running: { $0 == 1 ? (.connectionLost, .seconds(100)) : nil }))
    #expect(s.start().isSuccess)
    // 2 s after the error, 4 s after nil.
    #expect(s.time.now == .seconds(6))
    #expect(s.observer.last.lastError == nil)
    s.time.run(for: .seconds(101))
    #expect(s.observer.last.status == .reconnecting)
    s.time.run(for: .seconds(2))
    #expect(s.observer.last.status == .connected)
  }

  @Test("R5: a drop is one connection end and one begin, however many retries fail until the next success")
  func drop() {
    let s = SimulatedSession(
      SimulatedSession.simple(
        connecting: { _, number in (2...4).contains(number) ? .fail(.connectTimeout, after: .seconds(10)) : .succeed()
        },
        running: { $0 == 1 ? (.connectionLost, .seconds(60)) : nil }))
    s.start()
    s.time.run(for: .seconds(1000))
    #expect(s.observer.statuses == [.disconnected, .connecting, .connected, .reconnecting, .connected])
    #expect(
      s.analytics.trace.filter { $0.hasPrefix("c") } == [
        "cBegin(initial)", "cEnd(connectionError)", "cBegin(networkLoss)",
      ])
    #expect(s.analytics.trace.count { $0 == "aBegin" } == 5)
  }

  @Test("R5: a clean return opens no new connection")
  func cleanReturn() {
    let s = SimulatedSession(SimulatedSession.simple(running: { $0 == 1 ? (nil, .seconds(60)) : nil }))
    s.start()
    s.time.run(for: .seconds(61))
    #expect(s.observer.statuses == [.disconnected, .connecting, .connected, .reconnecting, .connected])
    #expect(s.analytics.trace.filter { $0.hasPrefix("c") } == ["cBegin(initial)"])
  }

  @Test("R6: stop() of the controller is called once more after every runVPN, also when that was cancelled")
  func stopAfterRun() {
    let s = SimulatedSession(SimulatedSession.simple(running: { $0 == 1 ? (.connectionLost, .seconds(60)) : nil }))
    s.start()
    s.journal.clear()
    s.time.run(for: .seconds(61))
    #expect(s.journal.take() == ["status reconnecting", "c stop", "pull", "c connect", "status connected", "c run"])
    s.call { await $0.reconnect() }
    s.time.run()
    #expect(
      s.journal.take() == [
        "status reconnecting", "c stop", "c stop", "pull", "c connect", "status connected", "c run",
      ])
  }

  @Test("R7: between two connections neither the interface is closed nor the lock raised again")
  func interfaceStays() {
    let s = SimulatedSession(SimulatedSession.simple(running: { $0 < 5 ? (.connectionLost, .seconds(60)) : nil }))
    s.start()
    s.call { try? await $0.switchLocation() }
    s.time.run(for: .seconds(1000))
    #expect(s.analytics.trace.count { $0 == "aEnd(connected)" } >= 5)
    #expect(s.journal.count("close") == 0)
    #expect(s.journal.count("lock") == 1)
  }

  @Test("R8: a loop that ends by itself reports noEndpointsAvailable, and says why")
  func endsByItself() {
    let s = SimulatedSession(
      policy: { $0.startDeadline = .seconds(60) },
      SimulatedSession.simple(connecting: { _, _ in .fail(.connectTimeout, after: .seconds(10)) }))
    #expect(s.start().tunnelError == .startDeadlinePassed(lastError: .connectTimeout))
    s.time.run()
    #expect(s.time.now == .seconds(60))
    #expect(
      s.analytics.trace.suffix(3) == [
        "aEnd(cancelled)", "cEnd(noEndpointsAvailable)", "sEnd(noEndpointsAvailable)",
      ])
    #expect(s.observer.last.status == .disconnected)
    #expect(s.observer.last.endCause == .startDeadlinePassed)
    #expect(s.observer.last.lastError == .startDeadlinePassed(lastError: .connectTimeout))
  }

  @Test("R9: a generator that fails within a session does not end the connection")
  func generatorFailsInside() {
    let s = SimulatedSession(
      SimulatedSession.simple(
        [.give(Endpoint("a")), .fail(PacketTunnelError.network("x")), .nothing, .give(Endpoint("b"))],
        running: { $0 == 1 ? (.connectionLost, .seconds(60)) : nil }))
    s.start()
    s.time.run(for: .seconds(70))
    #expect(s.observer.last.status == .connected)
    #expect(
      s.analytics.trace.filter { $0.hasPrefix("c") } == [
        "cBegin(initial)", "cEnd(connectionError)", "cBegin(networkLoss)",
      ])
  }

  @Test("R10: what is left of a batch is used on a drop before the next batch is asked for, once online")
  func leftovers() {
    let s = SimulatedSession { time, journal in
      (
        BatchGenerator([[Endpoint("a"), Endpoint("b")], [Endpoint("c")]], journal: journal),
        [
          ScriptedController<Endpoint>(
            time: time, journal: journal,
            connecting: { endpoint, _ in
              journal.add("to \(endpoint.name)")
              return .succeed()
            }, running: { $0 < 3 ? (.connectionLost, .seconds(60)) : nil })
        ]
      )
    }
    s.start()
    s.network.tell(ScriptedNetwork.offline)
    s.time.run(for: .seconds(100))
    #expect(s.observer.last.status == .reconnecting)
    #expect(s.journal.count("to b") == 0)
    s.network.tell(ScriptedNetwork.wifi)
    s.time.run()
    #expect(s.journal.all.filter { $0 == "pull" || $0.hasPrefix("to") } == ["pull", "to a", "to b"])
    s.time.run(for: .seconds(100))
    #expect(s.journal.all.filter { $0 == "pull" || $0.hasPrefix("to") } == ["pull", "to a", "to b", "pull", "to c"])
  }

  @Test("R11: data usage is asked for every second, and is nothing after a drop and a stop")
  func usage() {
    let s = SimulatedSession(SimulatedSession.simple(running: { $0 == 1 ? (.connectionLost, .seconds(5)) : nil }))
    s.start()
    s.time.run(for: .milliseconds(999))
    #expect(s.observer.last.dataUsage.bytesSent == 0)
    s.time.run(for: .milliseconds(1))
    #expect(s.observer.last.dataUsage == PacketTunnelDataUsage(bytesReceived: 1, bytesSent: 2))
    s.time.run(until: .seconds(5))
    let reconnecting = s.observer.states.first { $0.status == .reconnecting }
    #expect(reconnecting?.dataUsage.bytesSent == 0)
    #expect(reconnecting?.connectedEndpoint == nil)
    s.time.run(for: .seconds(1))
    #expect(s.observer.last.dataUsage.bytesSent == 2)
    s.stop()
    #expect(s.observer.last.dataUsage == PacketTunnelDataUsage(bytesReceived: 0, bytesSent: 0))
    #expect(s.observer.last.connectedSince == nil)
  }

  @Test("R13: a stop while connecting shows disconnected, connecting, disconnecting, disconnected")
  func stopWhileConnecting() {
    let s = SimulatedSession(SimulatedSession.simple(connecting: { _, _ in .wait }))
    #expect(s.start(within: .seconds(1)) == nil)
    #expect(s.stop() == .zero)
    #expect(s.observer.statuses == [.disconnected, .connecting, .disconnecting, .disconnected])
    #expect(
      s.analytics.trace == [
        "sBegin", "cBegin(initial)", "aBegin", "aEnd(cancelled)", "cEnd(userInitiated)", "sEnd(userInitiated)",
      ])
  }

  @Test("G1, G2: the generator is asked once for each attempt, and what it gives is what is connected")
  func oncePerAttempt() {
    let s = SimulatedSession(
      SimulatedSession.simple(
        [.give(Endpoint("a")), .give(Endpoint("b")), .give(Endpoint("c"))],
        connecting: { endpoint, _ in endpoint.name == "c" ? .succeed() : .fail(.handshakeFailed, after: .seconds(1)) }))
    s.start()
    #expect(
      s.journal.all.filter { $0 == "pull" || $0 == "c connect" } == [
        "pull", "c connect", "pull", "c connect", "pull", "c connect",
      ])
    #expect(s.analytics.configurations.compactMap { ($0 as? Endpoint)?.name } == ["a", "b", "c"])
  }

  @Test("G3: nil backs off and asks again; nothing is taken down and no error shown")
  func nothingRightNow() {
    let s = SimulatedSession(
      SimulatedSession.simple(
        [.give(Endpoint("a")), .nothing, .nothing, .nothing, .nothing, .nothing, .give(Endpoint("b"))],
        running: { $0 == 1 ? (.connectionLost, .seconds(60)) : nil }))
    s.start()
    s.time.run(for: .seconds(122))
    #expect(s.observer.statuses == [.disconnected, .connecting, .connected, .reconnecting, .connected])
    #expect(s.journal.count("close") == 0)
    #expect(s.observer.states.allSatisfy { $0.lastError == nil })
  }

  @Test("G4, A4: what the generator throws is shown at once and tried again")
  func generatorThrows() {
    struct Refused: Error {}
    let s = SimulatedSession(SimulatedSession.simple([.fail(Refused()), .give(Endpoint("a"))]))
    #expect(s.start(within: .zero) == nil)
    #expect(s.observer.last.lastError == .configurationFailed("Refused()"))
    #expect(s.observer.last.status == .connecting)
    s.time.run(for: .seconds(2))
    #expect(s.observer.last.status == .connected)
    #expect(s.observer.last.lastError == nil)
  }

  @Test("G6: a batch is tried in its order; a full round that failed shows its last error and backs off")
  func batches() {
    let s = SimulatedSession { time, journal in
      (
        BatchGenerator([[Endpoint("a"), Endpoint("b")]], journal: journal),
        [
          ScriptedController<Endpoint>(
            time: time, journal: journal,
            connecting: { endpoint, _ in
              journal.add("to \(endpoint.name)")
              return .fail(endpoint.name == "a" ? .connectTimeout : .handshakeFailed)
            })
        ]
      )
    }
    #expect(s.start(within: .seconds(7)) == nil)
    #expect(
      s.journal.all.filter { $0 == "pull" || $0.hasPrefix("to") || $0.hasPrefix("error") } == [
        "pull", "to a", "to b", "error handshakeFailed", "pull", "to a", "to b", "pull", "to a", "to b",
      ])
    #expect(s.time.now == .seconds(7))
  }

  @Test("G8: waits are 2, 4, 8, 16, 32, 60, 60 s and so on")
  func backoff() throws {
    let s = SimulatedSession(SimulatedSession.simple([.nothing]))
    #expect(s.start(within: .seconds(240)) == nil)
    let calls = try #require(s.session.generator as? ScriptedGenerator).calls
    let waits: [Duration] = zip(calls.dropFirst(), calls).map { $0 - $1 }
    let wanted: [Duration] = [2, 4, 8, 16, 32, 60, 60].map { .seconds($0) }
    #expect(waits == wanted)
  }

  @Test("G8: jitter shortens a wait and never lengthens it")
  func jitter() {
    var backoff = SessionPolicy.Backoff()
    for _ in 0..<1000 {
      let delay = backoff.delay(failures: 3)
      #expect(delay >= .seconds(6.4) && delay <= .seconds(8))
    }
    backoff.jitter = { 7 }
    #expect(backoff.delay(failures: 100) == .seconds(60))
    backoff.jitter = { -1 }
    #expect(backoff.delay(failures: 0) == .zero)
    backoff.delays = []
    #expect(backoff.delay(failures: 1) == .zero)
  }

  @Test("G9: offline it does not sleep; the network's return ends the wait at once")
  func offline() throws {
    let s = SimulatedSession(path: ScriptedNetwork.offline, SimulatedSession.simple([.nothing, .give(Endpoint("a"))]))
    #expect(s.start(within: .seconds(3600)) == nil)
    #expect(s.journal.count("pull") == 0)
    s.network.tell(ScriptedNetwork.wifi)
    s.time.run(for: .seconds(1))
    // In the wait after nil the network goes, and comes back long after its end.
    s.network.tell(ScriptedNetwork.offline)
    s.time.run(for: .seconds(3600))
    #expect(s.journal.count("pull") == 1)
    s.network.tell(ScriptedNetwork.wifi)
    s.time.run()
    #expect(s.observer.last.status == .connected)
    let calls = try #require(s.session.generator as? ScriptedGenerator).calls
    #expect(calls == [.seconds(3600), .seconds(7201)])
  }

  @Test("G9: a generator that fails offline is asked again when the network is back, without a wait")
  func failsOffline() {
    let s = SimulatedSession(
      SimulatedSession.simple(
        [.slow(.seconds(5), Endpoint("a")), .give(Endpoint("b"))],
        connecting: { endpoint, _ in
          endpoint.name == "a" ? .fail(.network("unreachable")) : .succeed()
        }))
    #expect(s.start(within: .seconds(1)) == nil)
    s.network.tell(ScriptedNetwork.offline)
    s.time.run(for: .seconds(100))
    // Pulled while online, but there is no connecting it before the network is back.
    #expect(s.journal.count("c connect") == 0)
    s.network.tell(ScriptedNetwork.wifi)
    s.time.run()
    #expect(s.observer.last.status == .connected)
    #expect(s.time.now == .seconds(101))
  }

  @Test("G10: a configuration that no controller is for is logged and skipped")
  func strange() {
    let s = SimulatedSession(SimulatedSession.simple([.give(StrangeEndpoint()), .give(Endpoint("a"))]))
    #expect(s.start().isSuccess)
    #expect(s.time.now == .zero)
    #expect(s.log.all.contains { $0.hasPrefix("error") && $0.contains("StrangeEndpoint") })
    #expect(s.analytics.trace.count { $0 == "aBegin" } == 1)
  }

  @Test("Each configuration goes to the controller of its type")
  func dispatch() {
    let s = SimulatedSession { time, journal in
      (
        ScriptedGenerator([.give(OtherEndpoint("o")), .give(Endpoint("a"))], time: time, journal: journal),
        [
          ScriptedController<Endpoint>(time: time, journal: journal, name: "first"),
          ScriptedController<OtherEndpoint>(
            time: time, journal: journal, name: "second", connecting: { _, _ in .fail(.handshakeFailed) }),
        ]
      )
    }
    s.start()
    #expect(s.journal.all.filter { $0.hasSuffix("connect") } == ["second connect", "first connect"])
  }

  @Test("A generator that gives what fails at once for ever does not become a busy loop")
  func noBusyLoop() throws {
    let s = SimulatedSession(SimulatedSession.simple(connecting: { _, _ in .fail(.unsupportedConfiguration("x")) }))
    #expect(s.start(within: .seconds(600)) == nil)
    // 9 at once, then at the pace of the backoff.
    #expect(s.journal.count("pull") == 9 + 13)
    #expect(s.observer.last.lastError == .unsupportedConfiguration("x"))
  }

  @Test("An endpoint that accepts and drops at once does not become a busy loop")
  func noFlapping() {
    let s = SimulatedSession(SimulatedSession.simple(running: { _ in (.connectionLost, .milliseconds(1)) }))
    s.start()
    s.time.run(for: .seconds(600))
    #expect((10...20).contains(s.journal.count("c connect")))
  }
}

extension Optional where Wrapped == Result<Void, any Error> {
  var isSuccess: Bool { if case .success = self { true } else { false } }
  var error: (any Error)? { if case .failure(let error) = self { error } else { nil } }
  var tunnelError: PacketTunnelError? { error as? PacketTunnelError }
}
