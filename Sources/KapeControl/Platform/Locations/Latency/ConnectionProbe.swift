import Foundation
import KapeControl
import KapeProtocols

/// The time that a connection by TCP takes. A refusal is an answer of the other end like any other.
enum ConnectionProbe {
  static func roundTrip(to target: LatencyTarget, within limit: Duration, _ reactor: Reactor) async throws -> Duration?
  {
    let kind = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
    let raw = socket(target.address.domain, kind, 0)
    guard raw >= 0 else { throw SystemError("socket") }
    let socket = Descriptor(owning: raw)
    // No FIN that waits for an answer: whoever listens is told at once that nothing comes.
    var linger = linger(l_onoff: 1, l_linger: 0)
    setsockopt(raw, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout.size(ofValue: linger)))
    let clock = ContinuousClock()
    let start = clock.now
    let result = SocketAddress(target.address, port: target.port).withSockaddr { connect(raw, $0, $1) }
    if result == 0 || errno == ECONNREFUSED { return clock.now - start }
    guard errno == EINPROGRESS else { throw SystemError("connect") }
    try await reactor.writable(socket.raw, within: limit)
    let elapsed = clock.now - start
    var code: Int32 = 0
    var size = socklen_t(MemoryLayout<Int32>.size)
    guard getsockopt(socket.raw, SOL_SOCKET, SO_ERROR, &code, &size) == 0 else { throw SystemError("getsockopt") }
    return code == 0 || code == ECONNREFUSED ? elapsed : nil
  }
}
