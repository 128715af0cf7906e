import KapeControl
import KapePlatform
import Testing

@Suite struct ConnectionLivenessTests {
  @Test("§16: dead when something that calls for an answer was sent and nothing authentic came for the dead time")
  func dead() {
    var liveness = ConnectionLiveness()
    liveness.look(sent: 100, received: 0, at: .seconds(1))
    liveness.look(sent: 200, received: 0, at: .seconds(10))
    #expect(!liveness.isDead(at: .milliseconds(15_999)))
    #expect(liveness.isDead(at: .seconds(16)))
    liveness.look(sent: 200, received: 1, at: .seconds(16))
    #expect(!liveness.isDead(at: .seconds(1000)))
  }

  @Test("§16: no traffic, no verdict; the first send after a silence starts the clock")
  func idle() {
    var liveness = ConnectionLiveness()
    for second in stride(from: 0, to: 3600, by: 10) {
      liveness.look(sent: 0, received: 0, at: .seconds(second))
      #expect(!liveness.isDead(at: .seconds(second)))
    }
    liveness.look(sent: 1, received: 0, at: .seconds(3600))
    #expect(!liveness.isDead(at: .seconds(3614)))
    #expect(liveness.isDead(at: .seconds(3615)))
  }

  @Test("After a sleep of the machine what was open before counts no more")
  func slept() {
    var liveness = ConnectionLiveness()
    liveness.look(sent: 1, received: 0, at: .seconds(1))
    liveness.look(sent: 1, received: 0, at: .seconds(36_000))
    #expect(!liveness.isDead(at: .seconds(36_000)))
  }
}

@Suite struct WireGuardVerdictTests {
  private func event(_ kind: TunnelEvent.Kind, _ value: UInt64 = 0) -> TunnelEvent { TunnelEvent(kind, value: value) }

  @Test("§8: one try of the first handshake without an answer is ignored; giving up fails at once")
  func first() {
    var verdict = WireGuardVerdict()
    #expect(verdict.take(event(.handshakeStarted, 1), at: .zero) == nil)
    #expect(verdict.take(event(.handshakeStarted, 2), at: .seconds(5)) == nil)
    #expect(verdict.take(event(.handshakeFailed, 18), at: .seconds(90)) == .over(.handshakeFailed))
  }

  @Test("§8: connected once; a handshake that goes unanswered later means connection lost")
  func later() {
    var verdict = WireGuardVerdict()
    #expect(verdict.take(event(.connected), at: .zero) == .connected)
    #expect(verdict.take(event(.rekeyed), at: .seconds(120)) == nil)
    for (attempt, second) in [(1, 240), (2, 245), (3, 250)] {
      #expect(verdict.take(event(.handshakeStarted, UInt64(attempt)), at: .seconds(second)) == nil)
    }
    #expect(verdict.take(event(.handshakeStarted, 4), at: .seconds(255)) == .over(.connectionLost))
  }

  @Test("§16: control and data are judged apart")
  func apart() {
    var data = WireGuardVerdict()
    #expect(data.look(sent: 5, received: 0, at: .zero) == nil)
    _ = data.take(event(.connected), at: .zero)
    #expect(data.look(sent: 10, received: 0, at: .seconds(1)) == nil)
    // The handshake is answered, what is sent is not.
    _ = data.take(event(.handshakeStarted, 1), at: .seconds(10))
    _ = data.take(event(.rekeyed), at: .seconds(10))
    #expect(data.look(sent: 20, received: 0, at: .seconds(13)) == nil)
    #expect(data.look(sent: 20, received: 0, at: .seconds(16)) == .over(.connectionLost))

    var control = WireGuardVerdict()
    _ = control.take(event(.connected), at: .zero)
    _ = control.take(event(.handshakeStarted, 1), at: .seconds(120))
    #expect(control.look(sent: 1, received: 1, at: .seconds(130)) == nil)
    #expect(control.look(sent: 2, received: 2, at: .seconds(135)) == .over(.connectionLost))
  }

  @Test func theInterfaceGone() {
    var verdict = WireGuardVerdict()
    guard case .over(.tunnelSetupFailed) = verdict.take(event(.insideGone), at: .zero) else {
      return #expect(Bool(false))
    }
    #expect(verdict.take(event(.disconnected), at: .zero) == nil)
    _ = verdict.take(event(.connected), at: .zero)
    #expect(verdict.take(event(.disconnected), at: .zero) == .over(.connectionLost))
    #expect(verdict.take(event(.rebound), at: .zero) == nil)
  }
}
