import KapePlatform
import Testing

/// What happens when something never returns: docs/session.md has the same as a table.
@Suite struct SessionDeadlineTests {
  private static func never(_ number: Int, at which: Int) -> Script { number == which ? .never : .succeed() }

  @Test("start: a lock that is never raised is given up after 10 s, shown, and tried again")
  func lock() {
    let s = SimulatedSession(
      tunnel: { ScriptedTunnel(time: $0, journal: $1, raising: { _ in .never }) }, SimulatedSession.simple())
    #expect(s.start(within: .milliseconds(9_999)) == nil)
    #expect(s.observer.last.lastError == nil)
    s.time.run(for: .milliseconds(1))
    #expect(s.observer.last.lastError?.cause == .tunnelSetupFailed)
    #expect(s.observer.last.status == .connecting)
    #expect(s.stop() <= .milliseconds(2_200))
    #expect(s.observer.last.status == .disconnected)
    s.tunnel.release()
    s.time.runToEnd()
    #expect(s.time.timerCount == 0)
  }

  @Test("connect: an attempt that never ends is over after 45 s; the next configuration is tried by another controller")
  func connect() {
    let s = SimulatedSession { time, journal in
      (
        ScriptedGenerator(
          [.give(Endpoint("a")), .give(Endpoint("again")), .give(OtherEndpoint("o"))], time: time, journal: journal),
        [
          ScriptedController<Endpoint>(time: time, journal: journal, connecting: { _, _ in .never }),
          ScriptedController<OtherEndpoint>(time: time, journal: journal, name: "other"),
        ]
      )
    }
    #expect(s.start().isSuccess)
    #expect(s.time.now == .seconds(47))
    #expect(
      s.analytics.trace == [
        "sBegin", "cBegin(initial)", "aBegin", "aEnd(failed connectTimeout)", "aBegin", "aEnd(connected)",
      ])
    #expect(s.journal.count("c connect") == 1)
    #expect(s.log.all.contains { $0.contains("does not return from its last connection") })
  }

  @Test("connect: one that returns after it was given up is taken down, silently, and can be used again")
  func lateConnect() throws {
    let s = SimulatedSession(
      SimulatedSession.simple(connecting: { _, number in number == 1 ? .ignoreCancellation(.seconds(50)) : .succeed() })
    )
    #expect(s.start().isSuccess)
    let trace = s.analytics.trace
    #expect(trace.prefix(4) == ["sBegin", "cBegin(initial)", "aBegin", "aEnd(failed connectTimeout)"])
    #expect(trace.suffix(2) == ["aBegin", "aEnd(connected)"])
    #expect(trace.count { $0 == "aEnd(connected)" } == 1)
    #expect(s.time.now > .seconds(50) && s.time.now < .seconds(60))
    #expect(!s.journal.all.contains { $0.hasPrefix("VIOLATION") })
  }

  @Test("stop: a controller that never stops is given up; disconnected after 2 s and what the reporter takes")
  func stopNever() throws {
    let s = SimulatedSession(SimulatedSession.simple(stopping: { _ in .never }))
    s.start()
    #expect(s.stop() == .milliseconds(1_500))
    #expect(s.observer.last.status == .disconnected)
    #expect(s.analytics.trace.suffix(2) == ["cEnd(userInitiated)", "sEnd(userInitiated)"])
    #expect(s.journal.count("close") == 1)
    // The next session does without it until it has returned.
    #expect(s.start(within: .seconds(5)) == nil)
    #expect(s.observer.last.lastError?.cause == .tunnelSetupFailed)
    #expect(s.stop() == .zero)
  }

  @Test("stop: a platform that never closes the interface either is given up within the same 2 s")
  func closeNever() {
    let s = SimulatedSession(
      reporterTakes: .seconds(60),
      tunnel: { ScriptedTunnel(time: $0, journal: $1, closing: { _ in .never }) },
      SimulatedSession.simple(stopping: { _ in .never }))
    s.start()
    #expect(s.stop() == .milliseconds(2_200))
    #expect(s.observer.last.status == .disconnected)
  }

  @Test("pause: an interface that is never closed is given up after 10 s: paused, with the error shown")
  func pauseNever() {
    let s = SimulatedSession(
      tunnel: { ScriptedTunnel(time: $0, journal: $1, closing: { Self.never($0, at: 1) }) }, SimulatedSession.simple())
    s.start()
    s.call { await $0.pause(for: .seconds(60)) }
    #expect(s.time.now == .seconds(10))
    #expect(s.observer.last.status == .paused)
    #expect(s.observer.last.lastError?.cause == .tunnelSetupFailed)
    // What comes after it waits for it to return.
    s.call { await $0.resume() }
    #expect(s.time.now == .seconds(20))
    #expect(s.observer.last.status == .reconnecting)
    s.tunnel.release()
    s.time.run(for: .seconds(10))
    #expect(s.observer.last.status == .connected)
  }

  @Test("pause: a controller that never stops is given up after 2 s")
  func pauseControllerNever() {
    let s = SimulatedSession(SimulatedSession.simple(stopping: { _ in .never }))
    s.start()
    s.call { await $0.pause(for: .seconds(60)) }
    #expect(s.time.now == .seconds(2))
    #expect(s.observer.last.status == .paused)
  }

  @Test("reasserting: a flag that is never taken delays nothing")
  func reassertingNever() {
    let s = SimulatedSession(
      tunnel: { ScriptedTunnel(time: $0, journal: $1, reasserting: { _ in .never }) },
      SimulatedSession.simple(running: { $0 == 1 ? (.connectionLost, .seconds(60)) : nil }))
    s.start()
    s.time.run(for: .seconds(60))
    #expect(s.observer.last.status == .connected)
    s.time.run(for: .seconds(10))
    #expect(s.tunnel.flags.all == ["reasserting true", "reasserting false"])
  }

  @Test("generator: one that never answers is given up after 60 s, and not asked again before it has returned")
  func generatorNever() throws {
    let s = SimulatedSession(SimulatedSession.simple([.never, .give(Endpoint("a"))]))
    #expect(s.start(within: .seconds(61)) == nil)
    #expect(s.observer.last.lastError == .configurationFailed("the generator did not answer in time"))
    s.time.run(for: .seconds(600))
    #expect(s.journal.count("pull") == 1)
    try #require(s.session.generator as? ScriptedGenerator).release()
    s.time.run(for: .seconds(100))
    #expect(s.observer.last.status == .connected)
    #expect(!s.journal.all.contains { $0.hasPrefix("VIOLATION") })
  }

  @Test("generator: one that never answers does not hold up a stop, a pause or a switch")
  func generatorNeverStop() {
    let s = SimulatedSession(SimulatedSession.simple([.never]))
    #expect(s.start(within: .seconds(1)) == nil)
    s.call { await $0.pause(for: .seconds(5)) }
    #expect(s.time.now == .seconds(1))
    s.time.run(for: .seconds(10))
    #expect(s.stop() == .zero)
  }

  @Test("data usage: a controller that never answers is asked again after 10 s, and the caller gets nil")
  func usageNever() {
    final class Silent: ConnectionController {
      let run = Box<CheckedContinuation<PacketTunnelError?, Never>>()
      func setAttemptReporter(_ reporter: (any AttemptReporter)?) async {}
      func connect(_ configuration: Endpoint) async throws {}
      func runVPN() async -> PacketTunnelError? { await withCheckedContinuation { run.value = $0 } }
      func stop() async {
        let continuation = run.value
        run.value = nil
        continuation?.resume(returning: nil)
      }
      func currentDataUsage() async -> PacketTunnelDataUsage? {
        try? await Task.sleep(for: .seconds(1_000_000))
        return nil
      }
    }
    let s = SimulatedSession { time, journal in
      (ScriptedGenerator([.give(Endpoint("a"))], time: time, journal: journal), [Silent()])
    }
    s.start()
    let result = s.time.perform { [session = s.session] in await session.currentDataUsage() }
    #expect(result != nil)
    #expect(s.time.now == .seconds(10))
    s.stop()
  }
}
