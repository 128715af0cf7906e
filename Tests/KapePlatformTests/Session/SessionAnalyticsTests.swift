import Foundation
import KapePlatform
import Synchronization
import Testing

@Suite struct SessionAnalyticsTests {
  static let happyTrace = [
    "sBegin", "cBegin(initial)", "aBegin", "aEnd(connected)", "cEnd(userInitiated)", "sEnd(userInitiated)",
  ]

  @Test("§7.7: the happy path's trace, with all fields")
  func happyPath() throws {
    let selection = SessionSelection(
      selectedProtocol: "wireguard", selectedLocationDescription: "Utopia", connectSource: .onDemand)
    let s = SimulatedSession(
      selection: { selection }, SimulatedSession.simple(connecting: { _, _ in .succeed(after: .milliseconds(1500)) }))
    s.start()
    s.time.run(for: .seconds(10))
    s.stop()
    #expect(s.analytics.trace == Self.happyTrace)
    let events = s.analytics.events
    guard case .sessionBegin(let sessionBegin) = events[0], case .connectionBegin(let connectionBegin) = events[1],
      case .attemptBegin(let attemptBegin) = events[2], case .attemptEnd(let attemptEnd) = events[3],
      case .connectionEnd(let connectionEnd) = events[4], case .sessionEnd(let sessionEnd) = events[5]
    else { return #expect(Bool(false)) }
    #expect(sessionBegin.connectSource == .onDemand)
    #expect(connectionBegin.sessionId == sessionBegin.sessionId)
    #expect(attemptBegin.connectionId == connectionBegin.connectionId)
    #expect(attemptBegin.configuration as? Endpoint == Endpoint("a"))
    #expect(attemptEnd.attemptId == attemptBegin.attemptId)
    #expect(attemptEnd.elapsedMs == 1500)
    #expect(attemptEnd.endpoint == .init(host: "192.0.2.1", protocolDescription: "WireGuard"))
    #expect(connectionEnd.connectionId == connectionBegin.connectionId)
    #expect(connectionEnd.wasConnected)
    #expect(connectionEnd.durationMs == 11_500)
    #expect(connectionEnd.effectiveProtocol == "wireguard")
    #expect(connectionEnd.effectiveObfuscation == "none")
    #expect(sessionEnd.wasEverConnected)
    #expect(sessionEnd.durationMs == 11_500)
    #expect(sessionEnd.connectSource == .onDemand)
    let selected = events.map(\.selected)
    #expect(selected.allSatisfy { $0.0 == "wireguard" && $0.1 == "Utopia" })
  }

  @Test("§7.7: when the first endpoint fails there is no connection end before the stop")
  func firstFails() {
    let s = SimulatedSession(
      SimulatedSession.simple(connecting: { _, number in number == 1 ? .fail(.connectTimeout) : .succeed() }))
    s.start()
    s.stop()
    #expect(
      s.analytics.trace == [
        "sBegin", "cBegin(initial)", "aBegin", "aEnd(failed connectTimeout)", "aBegin", "aEnd(connected)",
        "cEnd(userInitiated)", "sEnd(userInitiated)",
      ])
  }

  @Test("§7.7: a drop, one failed retry, success: one connection end and one begin")
  func dropAndRetry() {
    let s = SimulatedSession(
      SimulatedSession.simple(
        connecting: { _, number in number == 2 ? .fail(.connectTimeout) : .succeed() },
        running: { $0 == 1 ? (.connectionLost, .seconds(60)) : nil }))
    s.start()
    s.time.run(for: .seconds(61))
    s.stop()
    #expect(
      s.analytics.trace == [
        "sBegin", "cBegin(initial)", "aBegin", "aEnd(connected)", "cEnd(connectionError)", "cBegin(networkLoss)",
        "aBegin", "aEnd(failed connectTimeout)", "aBegin", "aEnd(connected)", "cEnd(userInitiated)",
        "sEnd(userInitiated)",
      ])
  }

  @Test("N1: a reporter that takes 5 s for each event changes nothing of the tunnel's timing, nor of the order")
  func slowReporter() {
    let run = { (takes: Duration) -> (SimulatedSession, Duration, [String]) in
      let s = SimulatedSession(
        reporterTakes: takes,
        SimulatedSession.simple(
          connecting: { _, number in number == 2 ? .fail(.connectTimeout, after: .seconds(3)) : .succeed() },
          running: { $0 == 1 ? (.connectionLost, .seconds(20)) : nil }))
      var times: [Duration] = []
      s.start()
      times.append(s.time.now)
      s.time.run(for: .seconds(60))
      s.call { await $0.pause(for: .seconds(5)) }
      times.append(s.time.now)
      s.time.run(for: .seconds(30))
      let stop = s.stop()
      s.time.runToEnd()
      return (s, stop, s.journal.all + times.map { "\($0)" })
    }
    let fast = run(.zero)
    let slow = run(.seconds(5))
    #expect(slow.2 == fast.2)
    #expect(slow.0.analytics.trace == fast.0.analytics.trace)
    #expect(fast.1 == .zero)
    // The flush at the end is what waits for it, and not for long.
    #expect(slow.1 == .milliseconds(200))
  }

  @Test("N1: callbacks come on a queue of their own, one at a time and in order, also when the reporter blocks")
  func realQueue() {
    final class Blocking: VpnConnectionAnalytics {
      let seen = Mutex<[String]>([])
      let inside = Mutex(0)
      let overlaps = Mutex(0)
      let done = DispatchSemaphore(value: 0)
      private func record(_ text: String) {
        inside.withLock { $0 += 1 }
        if inside.withLock({ $0 }) > 1 { overlaps.withLock { $0 += 1 } }
        usleep(2000)
        seen.withLock { $0.append(text) }
        inside.withLock { $0 -= 1 }
      }
      func sessionDidBegin(_ event: VpnAnalyticsSessionBeginEvent) { record("sBegin") }
      func sessionDidEnd(_ event: VpnAnalyticsSessionEndEvent) {
        record("sEnd(\(event.reason))")
        done.signal()
      }
      func connectionDidBegin(_ event: VpnAnalyticsConnectionBeginEvent) { record("cBegin(\(event.reason))") }
      func connectionDidEnd(_ event: VpnAnalyticsConnectionEndEvent) { record("cEnd(\(event.reason))") }
      func attemptDidBegin(_ event: VpnAnalyticsAttemptBeginEvent) { record("aBegin") }
      func attemptDidEnd(_ event: VpnAnalyticsAttemptEndEvent) { record("aEnd(connected)") }
    }
    let time = SimulatedTime()
    let journal = Journal()
    let reporter = Blocking()
    let environment = SessionEnvironment(
      clock: time, executor: time, network: ScriptedNetwork(), observer: RecordingObserver())
    let session = KapeSessionController(
      generator: ScriptedGenerator([.give(Endpoint("a"))], time: time, journal: journal),
      controllers: [ScriptedController<Endpoint>(time: time, journal: journal)], logger: SilentLogger(),
      analytics: reporter, environment: environment)
    time.perform { try await session.start() }
    time.perform { await session.stop() }
    reporter.done.wait()
    #expect(reporter.seen.withLock { $0 } == Self.happyTrace)
    #expect(reporter.overlaps.withLock { $0 } == 0)
  }

  @Test("N2: attempts are the controller's to report; one that reports none leaves a trace without")
  func attemptsByController() {
    let s = SimulatedSession { time, journal in
      let controller = ScriptedController<Endpoint>(time: time, journal: journal)
      controller.reports.value = false
      return (ScriptedGenerator([.give(Endpoint("a"))], time: time, journal: journal), [controller])
    }
    s.start()
    s.stop()
    #expect(s.analytics.trace == ["sBegin", "cBegin(initial)", "cEnd(userInitiated)", "sEnd(userInitiated)"])
    guard case .connectionEnd(let end) = s.analytics.events[2] else { return #expect(Bool(false)) }
    #expect(end.effectiveProtocol == "wireguard")
  }

  @Test("N5: protocol and obfuscation are those that connected in that connection, nil when none did")
  func effective() {
    let s = SimulatedSession { time, journal in
      (
        ScriptedGenerator(
          [.give(OtherEndpoint("o")), .give(Endpoint("a")), .give(OtherEndpoint("o"))], time: time, journal: journal),
        [
          ScriptedController<Endpoint>(
            time: time, journal: journal, running: { _ in (.connectionLost, .seconds(60)) }),
          ScriptedController<OtherEndpoint>(
            time: time, journal: journal, connecting: { _, _ in .fail(.handshakeFailed, after: .seconds(50)) }),
        ]
      )
    }
    s.start()
    s.time.run(for: .seconds(70))
    s.stop()
    let ends = s.analytics.events.compactMap { event in
      if case .connectionEnd(let end) = event { end } else { nil }
    }
    #expect(ends.map(\.effectiveProtocol) == ["wireguard", nil])
    #expect(ends.map(\.effectiveObfuscation) == ["none", nil])
    #expect(ends.map(\.wasConnected) == [true, false])
  }

  @Test("N6: the log has the same trail at debug, whatever the reporter")
  func trail() {
    let s = SimulatedSession(SimulatedSession.simple())
    s.start()
    s.stop()
    let lines = s.log.all.filter { $0.hasPrefix("debug [analytics] ") }
    #expect(
      lines.map { $0.dropFirst("debug [analytics] ".count).prefix { $0 != " " } } == [
        "session", "connection", "attempt", "attempt", "connection", "session",
      ])
    #expect(lines.last == "debug [analytics] session end userInitiated")
  }

  @Test("N9: an attempt outside a session has an identifier and no begin; its end is sent")
  func attemptOutside() {
    let s = SimulatedSession(SimulatedSession.simple())
    let id = s.session.analytics.attemptDidBegin(configuration: Endpoint("a"))
    s.session.analytics.attemptDidEnd(id, result: .cancelled, endpoint: nil)
    // An end that was told already, and one that never began, are none.
    s.session.analytics.attemptDidEnd(id, result: .cancelled, endpoint: nil)
    s.session.analytics.attemptDidEnd(UUID(), result: .connected, endpoint: nil)
    s.time.run()
    #expect(s.analytics.trace == ["aEnd(cancelled)"])
  }

  @Test("N10: a restart is an end and a begin back to back, with nothing of a controller between them")
  func restart() {
    let s = SimulatedSession(
      SimulatedSession.simple(
        running: { $0 == 1 ? (.connectionLost, .seconds(60)) : nil },
        stopping: { _ in .succeed(after: .seconds(1)) }))
    s.start()
    s.time.run(for: .seconds(90))
    let trace = s.analytics.trace
    #expect(Array(trace[4...5]) == ["cEnd(connectionError)", "cBegin(networkLoss)"])
    guard case .connectionEnd(let end) = s.analytics.events[4], case .connectionBegin(let begin) = s.analytics.events[5]
    else { return #expect(Bool(false)) }
    #expect(end.sessionId == begin.sessionId)
    #expect(end.connectionId != begin.connectionId)
  }

  @Test("N11: a pause ends the connection as paused, a resume begins one as resumed and never as networkLoss")
  func pause() {
    let s = SimulatedSession(SimulatedSession.simple())
    s.start()
    s.call { await $0.pause(for: .seconds(60)) }
    s.time.run(for: .seconds(100))
    s.stop()
    #expect(
      s.analytics.trace == [
        "sBegin", "cBegin(initial)", "aBegin", "aEnd(connected)", "cEnd(paused)", "cBegin(resumed)", "aBegin",
        "aEnd(connected)", "cEnd(userInitiated)", "sEnd(userInitiated)",
      ])
  }

  @Test("Each session has an identifier of its own")
  func sessions() {
    let s = SimulatedSession(SimulatedSession.simple())
    for _ in 0..<2 {
      s.start()
      s.stop()
    }
    #expect(s.analytics.trace == Self.happyTrace + Self.happyTrace)
    let ids = s.analytics.events.compactMap { if case .sessionBegin(let event) = $0 { event.sessionId } else { nil } }
    #expect(Set(ids).count == 2)
  }
}

extension AnalyticsEvent {
  fileprivate var selected: (String, String?) {
    switch self {
    case .sessionBegin(let event): (event.selectedProtocol, event.selectedLocationDescription)
    case .sessionEnd(let event): (event.selectedProtocol, event.selectedLocationDescription)
    case .connectionBegin(let event): (event.selectedProtocol, event.selectedLocationDescription)
    case .connectionEnd(let event): (event.selectedProtocol, event.selectedLocationDescription)
    case .attemptBegin(let event): (event.selectedProtocol, event.selectedLocationDescription)
    case .attemptEnd(let event): (event.selectedProtocol, event.selectedLocationDescription)
    }
  }
}
