import KapePlatform
import Testing

@Suite struct SessionPauseTests {
  @Test("Pause: the connection and the interface go, the loop parks; it ends by itself, by a lock first")
  func pause() {
    let s = SimulatedSession(SimulatedSession.simple())
    s.start()
    s.journal.clear()
    s.call { await $0.pause(for: .seconds(60)) }
    #expect(s.journal.take() == ["status paused", "c stop", "c stop", "close", "unlock"])
    #expect(s.observer.last.pausedUntil == s.time.wallTime.addingTimeInterval(60))
    #expect(s.observer.last.connectedEndpoint == nil)
    s.time.run(for: .seconds(59))
    #expect(s.journal.take() == [])
    s.time.run(for: .seconds(1))
    #expect(
      s.journal.take() == [
        "lock", "status reconnecting", "pull", "c connect", "status connected", "c run",
      ])
    #expect(s.observer.last.pausedUntil == nil)
  }

  @Test("Pause: a further one only moves the end, forwards or backwards")
  func again() {
    let s = SimulatedSession(SimulatedSession.simple())
    s.start()
    s.call { await $0.pause(for: .seconds(10)) }
    s.call { await $0.pause(for: .seconds(100)) }
    s.time.run(for: .seconds(50))
    #expect(s.observer.last.status == .paused)
    s.call { await $0.pause(for: .seconds(5)) }
    s.time.run(for: .seconds(5))
    #expect(s.observer.last.status == .connected)
    #expect(s.journal.count("close") == 1)
    #expect(s.analytics.trace.count { $0 == "cEnd(paused)" } == 1)
  }

  @Test("Pause: the clock on the wall decides when it is over")
  func wallClock() {
    let s = SimulatedSession(SimulatedSession.simple())
    s.start()
    s.call { await $0.pause(for: .seconds(60)) }
    // Set back by half a minute: the timer fires too early.
    s.time.moveWall(by: .seconds(-30))
    s.time.run(for: .seconds(61))
    #expect(s.observer.last.status == .paused)
    s.time.run(for: .seconds(29))
    #expect(s.observer.last.status == .connected)
    // The machine slept: it is over before the timer fires.
    s.call { await $0.pause(for: .seconds(3600)) }
    s.call { await $0.resumeIfDue() }
    #expect(s.observer.last.status == .paused)
    s.time.moveWall(by: .seconds(3600))
    s.call { await $0.resumeIfDue() }
    s.time.run()
    #expect(s.observer.last.status == .connected)
  }

  @Test("Resume: several at once reconnect once")
  func concurrentResumes() {
    let s = SimulatedSession(SimulatedSession.simple())
    s.start()
    s.call { await $0.pause(for: .seconds(60)) }
    for _ in 0..<4 { s.time.spawn { [session = s.session] in await session.resume() } }
    s.time.run(for: .seconds(100))
    #expect(s.journal.count("c connect") == 2)
    #expect(s.journal.count("lock") == 2)
    #expect(s.analytics.trace.count { $0 == "cBegin(resumed)" } == 1)
    s.call { await $0.resume() }
    #expect(s.journal.count("c connect") == 2)
  }

  @Test("Pause: a stop meanwhile never reconnects, and the connection was over already")
  func stopWhilePaused() {
    let s = SimulatedSession(SimulatedSession.simple())
    s.start()
    s.call { await $0.pause(for: .seconds(60)) }
    s.stop()
    s.call { await $0.resume() }
    s.time.run(for: .seconds(1000))
    #expect(s.observer.statuses == [.disconnected, .connecting, .connected, .paused, .disconnecting, .disconnected])
    #expect(s.analytics.trace.suffix(2) == ["cEnd(paused)", "sEnd(userInitiated)"])
    #expect(s.observer.last.pausedUntil == nil)
  }

  @Test("Pause: without a session, and after a stop, ignored")
  func withoutSession() {
    let s = SimulatedSession(SimulatedSession.simple())
    s.call { await $0.pause(for: .seconds(60)) }
    #expect(s.observer.states.isEmpty)
    s.start()
    s.stop()
    s.call { await $0.pause(for: .seconds(60)) }
    #expect(s.observer.last.status == .disconnected)
    #expect(s.time.timerCount == 0)
  }

  @Test("Pause: a negative duration is over at once, a huge one is cut", arguments: [-1, 0, 1] as [Double])
  func oddDurations(sign: Double) {
    let s = SimulatedSession(SimulatedSession.simple())
    s.start()
    if sign > 0 {
      s.call { await $0.pause(for: .seconds(Int64.max)) }
      s.time.run(for: .seconds(1_000_000))
      #expect(s.observer.last.status == .paused)
      s.call { await $0.resume() }
    } else {
      s.call { await $0.pause(for: .seconds(sign) * 1e9) }
    }
    s.time.run()
    #expect(s.observer.statuses.suffix(3) == [.paused, .reconnecting, .connected])
  }

  @Test("Pause: in every state that comes before a connection, and start still returns when that is there")
  func beforeConnected() {
    for answers: [ScriptedGenerator.Answer] in [
      [.slow(.seconds(5), Endpoint("a"))], [.nothing, .give(Endpoint("a"))], [.give(Endpoint("a"))],
    ] {
      let s = SimulatedSession(
        policy: { $0.startDeadline = .seconds(60) },
        SimulatedSession.simple(answers, connecting: { _, _ in .succeed(after: .seconds(5)) }))
      let result = Box<Result<Void, any Error>>()
      s.time.spawn { [session = s.session] in
        do { result.value = .success(try await session.start()) } catch { result.value = .failure(error) }
      }
      s.time.run(for: .seconds(1))
      s.call { await $0.pause(for: .seconds(600)) }
      s.time.run(for: .seconds(599))
      #expect(result.value == nil)
      #expect(s.observer.last.status == .paused)
      s.time.run(for: .seconds(30))
      #expect(result.value.isSuccess)
    }
  }

  @Test("Pause: resumed while it still goes down, it comes up once that is done")
  func resumedEarly() {
    let s = SimulatedSession(
      tunnel: { ScriptedTunnel(time: $0, journal: $1, closing: { _ in .succeed(after: .seconds(3)) }) },
      SimulatedSession.simple())
    s.start()
    s.time.spawn { [session = s.session] in await session.pause(for: .seconds(60)) }
    s.time.run(for: .seconds(1))
    s.time.spawn { [session = s.session] in await session.resume() }
    s.time.run(for: .seconds(1))
    #expect(s.observer.last.status == .paused)
    s.time.run(for: .seconds(1))
    #expect(s.observer.last.status == .connected)
    // And one that is paused again meanwhile stays down.
    s.time.spawn { [session = s.session] in await session.pause(for: .seconds(60)) }
    s.time.run(for: .seconds(1))
    s.time.spawn { [session = s.session] in
      await session.resume()
      await session.pause(for: .seconds(30))
    }
    s.time.spawn { [session = s.session] in await session.pause(for: .seconds(30)) }
    s.time.run(for: .seconds(20))
    #expect(s.observer.last.status == .paused)
    #expect(s.analytics.trace.count { $0 == "cEnd(paused)" } == 2)
  }

  @Test("A forced reconnect while paused is a resume")
  func reconnectWhilePaused() {
    let s = SimulatedSession(SimulatedSession.simple())
    s.start()
    s.call { await $0.pause(for: .seconds(60)) }
    s.call { await $0.reconnect() }
    s.time.run()
    #expect(s.observer.last.status == .connected)
    #expect(s.analytics.trace.contains("cBegin(resumed)"))
  }
}
