/// Judges from what was sent and what came whether the other end is still there. A path is dead when something was sent
/// that calls for an answer and nothing authentic came for the dead time. Without anything sent there is no verdict, and
/// the first that is sent after a silence starts the clock. Each path (control, data) has one of its own.
package struct ConnectionLiveness: Sendable {
  package let deadTime: Duration
  /// Since when an answer is waited for; nil: nothing is open.
  private var waitingSince: Duration?
  private var lastLook: Duration?
  private var sent: UInt64 = 0
  private var received: UInt64 = 0

  package init(deadTime: Duration = .seconds(15)) { self.deadTime = deadTime }

  /// Something was sent that calls for an answer.
  package mutating func didSend(at now: Duration) { waitingSince = waitingSince ?? now }

  /// Something authentic came.
  package mutating func didReceive() { waitingSince = nil }

  /// The same from counters that only grow: `sent` of what calls for an answer, `received` of what is authentic.
  package mutating func look(sent: UInt64, received: UInt64, at now: Duration) {
    // The machine slept, or nobody looked for long: what was open then says nothing about now.
    if let lastLook, now - lastLook > deadTime { waitingSince = nil }
    lastLook = now
    if received > self.received {
      didReceive()
    } else if sent > self.sent {
      didSend(at: now)
    }
    self.sent = max(self.sent, sent)
    self.received = max(self.received, received)
  }

  package func isDead(at now: Duration) -> Bool {
    guard let waitingSince else { return false }
    return now - waitingSince >= deadTime
  }
}
