import KapePlatform
import Testing

@Suite struct SessionSwitchTests {
  @Test("switchLocation: asks anew and reconnects in place; interface and lock stay; it returns when connected")
  func inPlace() {
    let location = Box("Utopia")
    let selection = { @Sendable in SessionSelection(selectedLocationDescription: location.value) }
    let s = SimulatedSession(selection: selection) { time, journal in
      (
        BatchGenerator([[Endpoint("a"), Endpoint("left over")], [Endpoint("b")]], journal: journal),
        [
          ScriptedController<Endpoint>(
            time: time, journal: journal,
            connecting: { endpoint, _ in
              journal.add("to \(endpoint.name)")
              return .succeed(after: .milliseconds(100))
            })
        ]
      )
    }
    s.start()
    s.journal.clear()
    location.value = "Atlantis"
    let before = s.time.now
    #expect(s.switchLocation().isSuccess)
    #expect(s.time.now - before == .milliseconds(100))
    s.time.run()
    #expect(
      s.journal.take() == [
        "status reconnecting", "c stop", "c stop", "pull", "c connect", "to b", "status connected", "c run",
      ])
    #expect(
      s.analytics.trace.filter { $0.hasPrefix("c") } == [
        "cBegin(initial)", "cEnd(userInitiated)", "cBegin(initial)",
      ])
    let locations = s.analytics.events.compactMap { event -> String? in
      if case .connectionBegin(let begin) = event { begin.selectedLocationDescription } else { nil }
    }
    #expect(locations == ["Utopia", "Atlantis"])
  }

  @Test("switchLocation: throws what stood in the way, while the session goes on trying")
  func failure() {
    let s = SimulatedSession { time, journal in
      (
        BatchGenerator([[Endpoint("a")], [Endpoint("dead"), Endpoint("dead")], [Endpoint("b")]], journal: journal),
        [
          ScriptedController<Endpoint>(
            time: time, journal: journal,
            connecting: { endpoint, _ in endpoint.name == "dead" ? .fail(.handshakeFailed) : .succeed() })
        ]
      )
    }
    s.start()
    let result = s.switchLocation()
    #expect(result.tunnelError == .handshakeFailed)
    #expect(s.observer.last.lastError == .handshakeFailed)
    s.time.run(for: .seconds(2))
    #expect(s.observer.last.status == .connected)
  }

  @Test("switchLocation: what the generator throws, and nothing at all, are failures of the switch too")
  func generatorFails() {
    let s = SimulatedSession(
      SimulatedSession.simple([
        .give(Endpoint("a")), .fail(PacketTunnelError.network("x")), .nothing, .give(Endpoint("b")),
      ]))
    s.start()
    let first = s.switchLocation()
    #expect(first.tunnelError == .network("x"))
    let second = s.switchLocation()
    #expect(second.tunnelError == .noConfiguration)
    #expect(s.switchLocation().isSuccess)
  }

  @Test("switchLocation: has a deadline; the session goes on after it")
  func deadline() {
    let s = SimulatedSession(
      SimulatedSession.simple(
        connecting: { _, number in number == 2 ? .ignoreCancellation(.seconds(44)) : .succeed(after: .seconds(20)) }))
    s.start()
    s.network.tell(ScriptedNetwork.offline)
    s.time.run()
    let result = s.switchLocation()
    #expect(result.tunnelError == .startDeadlinePassed(lastError: nil))
    #expect(s.time.now == .seconds(80))
    s.network.tell(ScriptedNetwork.wifi)
    s.time.run(for: .seconds(60))
    #expect(s.observer.last.status == .connected)
  }

  @Test("switchLocation: without a session it throws; one that is stopped meanwhile, CancellationError")
  func withoutSession() {
    let s = SimulatedSession(SimulatedSession.simple(connecting: { _, number in number == 1 ? .succeed() : .wait }))
    let early = s.switchLocation()
    #expect(early.tunnelError == .cancelled)
    s.start()
    let result = Box<Result<Void, any Error>>()
    s.time.spawn { [session = s.session] in
      do { result.value = .success(try await session.switchLocation()) } catch { result.value = .failure(error) }
    }
    s.time.run(for: .seconds(1))
    s.stop()
    #expect(result.value.error is CancellationError)
  }

  @Test("switchLocation: while connecting it drops the attempt; start returns by the new one")
  func whileConnecting() {
    let s = SimulatedSession(SimulatedSession.simple(connecting: { _, number in number == 1 ? .wait : .succeed() }))
    #expect(s.start(within: .seconds(1)) == nil)
    #expect(s.switchLocation().isSuccess)
    #expect(
      s.analytics.trace == [
        "sBegin", "cBegin(initial)", "aBegin", "cEnd(userInitiated)", "cBegin(initial)", "aEnd(cancelled)", "aBegin",
        "aEnd(connected)",
      ])
    #expect(s.observer.statuses == [.disconnected, .connecting, .connected])
  }

  @Test("switchLocation: ends a pause, in which nothing of a connection is told twice")
  func whilePaused() {
    let s = SimulatedSession(SimulatedSession.simple())
    s.start()
    s.call { await $0.pause(for: .seconds(60)) }
    #expect(s.switchLocation().isSuccess)
    #expect(s.analytics.trace.filter { $0.hasPrefix("c") } == ["cBegin(initial)", "cEnd(paused)", "cBegin(resumed)"])
  }

  @Test("reconnect: drops the connection and advances to the next configuration within the same connection")
  func reconnect() {
    let s = SimulatedSession { time, journal in
      (
        BatchGenerator([[Endpoint("a"), Endpoint("b")]], journal: journal),
        [
          ScriptedController<Endpoint>(
            time: time, journal: journal,
            connecting: { endpoint, _ in
              journal.add("to \(endpoint.name)")
              return .succeed()
            })
        ]
      )
    }
    s.start()
    s.call { await $0.reconnect() }
    s.time.run()
    #expect(s.journal.all.filter { $0.hasPrefix("to") } == ["to a", "to b"])
    #expect(s.analytics.trace.filter { $0.hasPrefix("c") } == ["cBegin(initial)"])
    #expect(s.observer.statuses.suffix(3) == [.connected, .reconnecting, .connected])
  }

  @Test("reconnect: without a connection that is up, nothing")
  func reconnectWithoutConnection() {
    let s = SimulatedSession(SimulatedSession.simple(connecting: { _, _ in .wait }))
    s.call { await $0.reconnect() }
    #expect(s.start(within: .seconds(1)) == nil)
    s.call { await $0.reconnect() }
    s.time.run(for: .seconds(1))
    #expect(s.journal.count("c connect") == 1)
    #expect(s.journal.count("c stop") == 0)
  }

  @Test("reasserting is told while a tunnel that was up comes up again, and only then")
  func reasserting() {
    let s = SimulatedSession(SimulatedSession.simple(running: { $0 == 1 ? (.connectionLost, .seconds(60)) : nil }))
    s.start()
    s.time.run(for: .seconds(59))
    #expect(s.tunnel.flags.all == [])
    s.time.run(for: .seconds(1))
    #expect(s.tunnel.flags.all == ["reasserting true", "reasserting false"])
  }
}
