import KapePlatform
import Testing

@Suite struct SessionStartTests {
  @Test("R1: start returns after the first successful connect")
  func returnsConnected() {
    let s = SimulatedSession(SimulatedSession.simple(connecting: { _, _ in .succeed(after: .seconds(5)) }))
    #expect(s.start(within: .seconds(4)) == nil)
    s.time.run(for: .seconds(1))
    #expect(s.observer.last.status == .connected)
    // A second start of a session that is up returns at once.
    #expect(s.start().isSuccess)
    #expect(s.time.now == .seconds(5))
    #expect(s.analytics.trace.count { $0 == "sBegin" } == 1)
  }

  @Test("§16: a stop during start makes it throw CancellationError")
  func stoppedMeanwhile() {
    let s = SimulatedSession(SimulatedSession.simple(connecting: { _, _ in .wait }))
    let result = Box<Result<Void, any Error>>()
    for _ in 0..<2 {
      s.time.spawn { [session = s.session] in
        do { result.value = .success(try await session.start()) } catch { result.value = .failure(error) }
      }
    }
    s.time.run(for: .seconds(1))
    #expect(result.value == nil)
    s.stop()
    #expect(result.value.error is CancellationError)
    #expect(s.observer.last.endCause == .userInitiated)
    #expect(s.observer.last.lastError == nil)
  }

  @Test("§16: without a controller it throws protocolNotBundled, and there was no session")
  func noController() {
    let s = SimulatedSession { time, journal in
      (ScriptedGenerator([.give(Endpoint("a"))], time: time, journal: journal), [])
    }
    #expect(s.start().tunnelError == .protocolNotBundled)
    #expect(s.observer.last.lastError == .protocolNotBundled)
    #expect(s.observer.last.endCause == .protocolNotBundled)
    #expect(s.observer.last.status == .disconnected)
    #expect(s.analytics.trace.isEmpty)
  }

  @Test(
    "§16: what only the default generator knows to be hopeless ends the start",
    arguments: [PacketTunnelError.notSignedIn, .noSubscription, .invalidSettings("x")])
  func hopeless(error: PacketTunnelError) {
    let s = SimulatedSession(SimulatedSession.simple([.fail(TerminalStartError(error)), .give(Endpoint("a"))]))
    #expect(s.start().tunnelError == error)
    s.time.run()
    #expect(s.observer.last.lastError == error)
    #expect(s.observer.last.endCause == error.cause)
    #expect(s.analytics.trace == ["sBegin", "cBegin(initial)", "cEnd(connectionError)", "sEnd(userInitiated)"])
  }

  @Test("§16: the same from a generator of one's own is tried again")
  func notHopeless() {
    let s = SimulatedSession(
      SimulatedSession.simple([.fail(PacketTunnelError.notSignedIn), .give(Endpoint("a"))]))
    #expect(s.start().isSuccess)
    #expect(s.time.now == .seconds(2))
  }

  @Test("§16: once it was connected, what would have ended the start is tried again")
  func hopelessLater() {
    let s = SimulatedSession(
      SimulatedSession.simple(
        [.give(Endpoint("a")), .fail(TerminalStartError(.notSignedIn)), .give(Endpoint("b"))],
        running: { $0 == 1 ? (.connectionLost, .seconds(60)) : nil }))
    s.start()
    s.time.run(for: .seconds(60))
    #expect(s.observer.last.lastError == .notSignedIn)
    #expect(s.observer.last.status == .reconnecting)
    s.time.run(for: .seconds(2))
    #expect(s.observer.last.status == .connected)
  }

  @Test("§16: the start's deadline counts until the first connect, and not at all without one")
  func deadline() {
    let s = SimulatedSession(
      policy: { $0.startDeadline = .seconds(60) },
      SimulatedSession.simple(
        [.give(Endpoint("a")), .nothing],
        running: { _ in (.connectionLost, .seconds(59)) }))
    #expect(s.start().isSuccess)
    s.time.run(for: .seconds(10_000))
    #expect(s.observer.last.status == .reconnecting)
    let endless = SimulatedSession(SimulatedSession.simple([.nothing]))
    #expect(endless.start(within: .seconds(10_000)) == nil)
    #expect(endless.observer.last.status == .connecting)
  }

  @Test("A caller that is cancelled takes its session with it, unless another waits too")
  func cancelledCaller() {
    let s = SimulatedSession(SimulatedSession.simple(connecting: { _, _ in .wait }))
    let ends = Journal()
    let callers = (0..<2).map { number in
      s.time.spawn { [session = s.session] in
        do { try await session.start() } catch { ends.add("\(number) \(error is CancellationError)") }
      }
    }
    s.time.run(for: .seconds(1))
    callers[0].cancel()
    s.time.run(for: .seconds(1))
    #expect(ends.take() == ["0 true"])
    #expect(s.observer.last.status == .connecting)
    callers[1].cancel()
    s.time.run(for: .seconds(1))
    #expect(ends.take() == ["1 true"])
    #expect(s.observer.last.status == .disconnected)
    #expect(s.observer.last.endCause == .cancelled)
  }

  @Test("A start while the last session goes down waits for its end and begins a new one")
  func startWhileStopping() {
    let s = SimulatedSession(SimulatedSession.simple(stopping: { _ in .ignoreCancellation(.milliseconds(500)) }))
    s.start()
    s.time.spawn { [session = s.session] in await session.stop() }
    s.time.run(for: .milliseconds(100))
    #expect(s.observer.last.status == .disconnecting)
    #expect(s.start().isSuccess)
    #expect(
      s.observer.statuses == [
        .disconnected, .connecting, .connected, .disconnecting, .disconnected, .connecting, .connected,
      ])
    #expect(s.analytics.trace.count { $0 == "sBegin" } == 2)
  }

  @Test("A stop without a session does nothing, also twice, and one after the other")
  func stops() {
    let s = SimulatedSession(SimulatedSession.simple())
    #expect(s.stop() == .zero)
    s.start()
    for _ in 0..<3 { s.time.spawn { [session = s.session] in await session.stop() } }
    s.stop()
    s.stop()
    #expect(s.analytics.trace == SessionAnalyticsTests.happyTrace)
  }

  @Test("A lock that cannot be raised is shown and tried again; nothing is connected before it is there")
  func lockFails() {
    let s = SimulatedSession(
      tunnel: { time, journal in
        ScriptedTunnel(
          time: time, journal: journal, raising: { $0 < 3 ? .fail(.tunnelSetupFailed("no permission")) : .succeed() })
      }, SimulatedSession.simple())
    #expect(s.start(within: .zero) == nil)
    #expect(s.observer.last.lastError == .tunnelSetupFailed("the tunnel could not be set up: no permission"))
    #expect(s.journal.count("pull") == 0)
    s.time.run(for: .seconds(10))
    #expect(s.observer.last.status == .connected)
    #expect(s.journal.count("lock") == 3)
  }
}
