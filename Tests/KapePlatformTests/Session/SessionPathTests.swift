import KapePlatform
import Testing

@Suite struct SessionPathTests {
  @Test("K-047: twenty updates that change nothing do nothing; one real change is exactly one reconnect")
  func storm() {
    let s = SimulatedSession(SimulatedSession.simple())
    s.start()
    s.time.run(for: .seconds(1))
    s.journal.clear()
    for _ in 0..<20 {
      s.network.tell(ScriptedNetwork.wifi)
      s.time.run(for: .milliseconds(500))
    }
    #expect(s.journal.all.isEmpty)
    s.network.tell(ScriptedNetwork.cable)
    s.time.run(for: .seconds(100))
    #expect(
      s.journal.take() == [
        "status reconnecting", "c stop", "c stop", "pull", "c connect", "status connected", "c run",
      ])
  }

  @Test("R12: another path while connected reconnects with the reason pathChange, once it has settled")
  func pathChange() {
    let s = SimulatedSession(SimulatedSession.simple())
    s.start()
    s.network.tell(ScriptedNetwork.cable)
    s.time.run(for: .milliseconds(199))
    #expect(s.observer.last.status == .connected)
    s.time.run(for: .milliseconds(1))
    s.stop()
    #expect(
      s.analytics.trace == [
        "sBegin", "cBegin(initial)", "aBegin", "aEnd(connected)", "cEnd(cancelled)", "cBegin(pathChange)", "aBegin",
        "aEnd(connected)", "cEnd(userInitiated)", "sEnd(userInitiated)",
      ])
  }

  @Test("Many real changes are at most one reconnect in each hold-down")
  func holdDown() {
    let s = SimulatedSession(SimulatedSession.simple())
    s.start()
    for number in 0..<100 {
      s.network.tell(number % 2 == 0 ? ScriptedNetwork.cable : ScriptedNetwork.wifi)
      s.time.run(for: .milliseconds(300))
    }
    // 30 s, 3 s each.
    #expect((2...11).contains(s.journal.count("c connect") - 1))
  }

  @Test("A path that goes and comes back as it was changes nothing")
  func flap() {
    let s = SimulatedSession(SimulatedSession.simple())
    s.start()
    for path in [ScriptedNetwork.offline, ScriptedNetwork.wifi, ScriptedNetwork.cable, ScriptedNetwork.wifi] {
      s.network.tell(path)
      s.time.run(for: .milliseconds(100))
    }
    s.time.run(for: .seconds(60))
    #expect(s.journal.count("c connect") == 1)
    s.network.tell(ScriptedNetwork.offline)
    s.time.run(for: .seconds(60))
    s.network.tell(ScriptedNetwork.cable)
    s.time.run(for: .seconds(60))
    #expect(s.journal.count("c connect") == 2)
  }

  @Test("What happens to the family that the connection does not use changes nothing")
  func otherFamily() {
    let s = SimulatedSession(SimulatedSession.simple())
    s.start()
    var path = ScriptedNetwork.wifi
    path.ipv6 = .init(interface: "wlan0", source: "2001:db8::2", gateway: "fe80::1")
    s.network.tell(path)
    s.time.run(for: .seconds(60))
    #expect(s.journal.count("c connect") == 1)
  }

  @Test("A path that changes while connecting is looked at once connected")
  func whileConnecting() {
    let s = SimulatedSession(SimulatedSession.simple(connecting: { _, _ in .succeed(after: .seconds(5)) }))
    #expect(s.start(within: .seconds(1)) == nil)
    s.network.tell(ScriptedNetwork.cable)
    s.time.run(for: .seconds(20))
    #expect(s.journal.count("c connect") == 2)
    #expect(s.observer.last.status == .connected)
  }

  @Test("All paths gone, then one back: connected again with nobody's help")
  func allPathsLost() {
    let s = SimulatedSession(SimulatedSession.simple(running: { $0 == 1 ? (.connectionLost, .seconds(15)) : nil }))
    s.start()
    s.network.tell(ScriptedNetwork.offline)
    s.time.run(for: .seconds(3600))
    #expect(s.observer.last.status == .reconnecting)
    #expect(s.journal.count("c connect") == 1)
    s.network.tell(ScriptedNetwork.cable)
    s.time.run()
    #expect(s.observer.last.status == .connected)
    #expect(
      s.analytics.trace.filter { $0.hasPrefix("c") } == [
        "cBegin(initial)", "cEnd(connectionError)", "cBegin(networkLoss)",
      ])
  }

  @Test("Another network ends a wait between tries")
  func backoffEnds() {
    let s = SimulatedSession(SimulatedSession.simple(Array(repeating: .nothing, count: 6) + [.give(Endpoint("a"))]))
    #expect(s.start(within: .seconds(65)) == nil)
    s.network.tell(ScriptedNetwork.cable)
    s.time.run(for: .milliseconds(200))
    #expect(s.observer.last.status == .connected)
  }

  @Test("The network is watched while there is a session, and not after it")
  func watching() {
    let s = SimulatedSession(SimulatedSession.simple())
    s.start()
    s.network.tell(ScriptedNetwork.cable)
    s.stop()
    s.time.run(for: .seconds(10))
    s.network.tell(ScriptedNetwork.wifi)
    s.time.run(for: .seconds(10))
    #expect(s.observer.last.status == .disconnected)
    #expect(s.time.timerCount == 0)
  }
}
