import Foundation
import KapeControl
import KapeProtocols

/// ICMP echo (RFC 792, RFC 4443 section 4) by a datagram socket: the kernel sets identifier and checksum, and hands over
/// the answers to this socket's requests alone.
enum EchoProbe {
  private static let headerSize = 8
  private static let dataSize = 16

  static func roundTrip(
    to address: IPAddress, within limit: Duration, _ reactor: Reactor
  ) async throws -> Duration? {
    let isIPv4 = address.family == .ipv4
    let kind = Int32(SOCK_DGRAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
    let raw = socket(address.domain, kind, isIPv4 ? Int32(IPPROTO_ICMP) : Int32(IPPROTO_ICMPV6))
    guard raw >= 0 else {
      if errno == EACCES || errno == EPERM || errno == EPROTONOSUPPORT { throw LatencyNotPermitted() }
      throw SystemError("socket")
    }
    let socket = Descriptor(owning: raw)
    // Connected, it gets what comes from there alone, errors too.
    guard SocketAddress(address, port: 0).withSockaddr({ connect(raw, $0, $1) }) == 0 else {
      throw SystemError("connect")
    }
    let request = Self.request(isIPv4: isIPv4)
    let clock = ContinuousClock()
    let start = clock.now
    guard send(socket.raw, request, request.count, 0) == request.count else { throw SystemError("send") }
    while true {
      let left = limit - (clock.now - start)
      guard left > .zero else { return nil }
      try await reactor.readable(socket.raw, within: left)
      let elapsed = clock.now - start
      var answer = [UInt8](repeating: 0, count: 256)
      let size = recv(socket.raw, &answer, answer.count, 0)
      if size < 0 {
        guard errno == EAGAIN || errno == EINTR else { throw SystemError("recv") }
        continue
      }
      if isAnswer(answer[..<size], to: request, isIPv4: isIPv4) { return elapsed }
    }
  }

  /// Type, code, checksum, identifier, sequence number; data that the answer repeats.
  static func request(isIPv4: Bool) -> [UInt8] {
    [isIPv4 ? 8 : 128, 0, 0, 0, 0, 0, 0, 1] + (0..<dataSize).map { _ in UInt8.random(in: 0...255) }
  }

  static func isAnswer(_ answer: ArraySlice<UInt8>, to request: [UInt8], isIPv4: Bool) -> Bool {
    answer.count == request.count && answer.first == (isIPv4 ? 0 : 129)
      // The kernel has set checksum and identifier.
      && answer.dropFirst(headerSize - 2).elementsEqual(request.dropFirst(headerSize - 2))
  }
}
