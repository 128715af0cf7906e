import Glibc
import KapeControl

/// Connects to the first of several addresses that answers: one after the other, the next when one refuses or has not
/// answered for a while (RFC 8305, section 5). Blocks; a thread of its own calls it.
struct ConnectionRace {
  struct Candidate: Sendable {
    let address: HostAddress
    let socket: OwnedDescriptor
  }

  /// How long one is waited for before the next begins too, as RFC 8305 recommends.
  static let headStart = Duration.milliseconds(250)

  private var waiting: [Candidate] = []
  private var refusals: [String] = []

  static func connect(_ candidates: [Candidate], stop: StopSignal) throws -> OwnedDescriptor {
    var race = ConnectionRace()
    var rest = candidates[...]
    while true {
      if let next = rest.popFirst(), let connected = race.begin(next) { return connected }
      if race.waiting.isEmpty {
        guard rest.isEmpty else { continue }
        throw KapeHTTPError.Cause.notReached(race.refusals.joined(separator: "; "))
      }
      let patience = rest.isEmpty ? -1 : Int32(headStart / .milliseconds(1))
      let ready = try stop.wait(for: race.waiting.map { ($0.socket.raw, Int16(POLLOUT)) }, milliseconds: patience)
      if let connected = race.end(ready) { return connected }
    }
  }

  private mutating func begin(_ candidate: Candidate) -> OwnedDescriptor? {
    let raw = candidate.socket.raw
    var yes: Int32 = 1
    // Requests are short: it is worse to wait for more than to send two packets.
    setsockopt(raw, Int32(IPPROTO_TCP), TCP_NODELAY, &yes, socklen_t(MemoryLayout<Int32>.size))
    let flags = fcntl(raw, F_GETFL)
    guard flags >= 0, fcntl(raw, F_SETFL, flags | O_NONBLOCK) == 0 else {
      refuse(candidate, errno)
      return nil
    }
    var storage = candidate.address.storage
    let result = withUnsafePointer(to: &storage) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { Glibc.connect(raw, $0, candidate.address.size) }
    }
    if result == 0 { return candidate.socket }
    if errno == EINPROGRESS || errno == EINTR { waiting.append(candidate) } else { refuse(candidate, errno) }
    return nil
  }

  private mutating func end(_ ready: [Int]) -> OwnedDescriptor? {
    for index in ready.reversed() {
      let candidate = waiting.remove(at: index)
      var code: Int32 = 0
      var size = socklen_t(MemoryLayout<Int32>.size)
      guard getsockopt(candidate.socket.raw, SOL_SOCKET, SO_ERROR, &code, &size) == 0 else {
        refuse(candidate, errno)
        continue
      }
      if code == 0 { return candidate.socket }
      refuse(candidate, code)
    }
    return nil
  }

  private mutating func refuse(_ candidate: Candidate, _ code: Int32) {
    refusals.append("\(candidate.address.text): \(systemText(code))")
  }
}
