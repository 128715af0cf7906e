import Foundation
import KapeControl
import KapeProtocols
import Testing

@testable import KapePlatform

@Suite("Round trips by sockets") struct SystemLatencyProbeTests {
  private let probe: SystemLatencyProbe

  init() throws { probe = SystemLatencyProbe(reactor: try Reactor()) }

  /// A TCP socket of loopback with a port of its own, that listens or does not.
  private func withSocket(
    _ host: String, listening: Bool, _ body: (LatencyTarget) async throws -> Void
  ) async throws {
    let local = SocketAddress(try address(host), port: 0)
    let raw = socket(local.address.domain, Int32(SOCK_STREAM.rawValue), 0)
    #expect(raw >= 0)
    defer { close(raw) }
    try #require(local.withSockaddr { bind(raw, $0, $1) } == 0)
    if listening { try #require(listen(raw, 8) == 0) }
    var name = sockaddr_storage()
    var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let status = withUnsafeMutablePointer(to: &name) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(raw, $0, &size) }
    }
    try #require(status == 0)
    // The port is at the same place in both families.
    let port = withUnsafeBytes(of: name) { UInt16(bigEndian: $0.loadUnaligned(fromByteOffset: 2, as: UInt16.self)) }
    try await body(LatencyTarget(local.address, port: port))
  }

  @Test("a connection that comes about, and one that is refused, both tell the time", arguments: ["127.0.0.1", "::1"])
  func connections(_ host: String) async throws {
    for listening in [true, false] {
      try await withSocket(host, listening: listening) { target in
        let time = try await probe.roundTrip(to: target, by: .connection, within: .seconds(30))
        #expect((time ?? .zero) > .zero, "listening: \(listening)")
      }
    }
  }

  @Test("no way there, or no answer within the limit, is nil")
  func none() async throws {
    // Prohibited for TCP: an address of many.
    let nowhere = LatencyTarget(try address("224.0.0.1"))
    #expect(try await probe.roundTrip(to: nowhere, by: .connection, within: .seconds(30)) == nil)
  }

  @Test("an echo is answered by this machine, or said not to be permitted", arguments: ["127.0.0.1", "::1"])
  func echo(_ host: String) async throws {
    do {
      let time = try await probe.roundTrip(to: LatencyTarget(address(host)), by: .echo, within: .seconds(30))
      #expect((time ?? .zero) > .zero)
    } catch is LatencyNotPermitted {
      let range = try String(contentsOfFile: "/proc/sys/net/ipv4/ping_group_range", encoding: .utf8)
        .split(whereSeparator: \.isWhitespace).compactMap { Int($0) }
      #expect(range.count == 2 && !(range[0]...max(range[0], range[1])).contains(Int(getegid())) || range[0] > range[1])
    }
  }

  @Test("RFC 792, RFC 4443: only the answer to this request, with its number and data, counts")
  func answers() {
    for isIPv4 in [true, false] {
      let request = EchoProbe.request(isIPv4: isIPv4)
      #expect(request.count == 24)
      #expect(request[0] == (isIPv4 ? 8 : 128) && request[1] == 0)
      var answer = request
      answer[0] = isIPv4 ? 0 : 129
      // Checksum and identifier are the kernel's.
      for index in 2..<6 { answer[index] = 0x55 }
      #expect(EchoProbe.isAnswer(answer[...], to: request, isIPv4: isIPv4))
      #expect(!EchoProbe.isAnswer(answer[...], to: request, isIPv4: !isIPv4))
      #expect(!EchoProbe.isAnswer(request[...], to: request, isIPv4: isIPv4))
      for index in [7, 8, 23] {
        var other = answer
        other[index] ^= 1
        #expect(!EchoProbe.isAnswer(other[...], to: request, isIPv4: isIPv4))
      }
      #expect(!EchoProbe.isAnswer(answer.dropLast(), to: request, isIPv4: isIPv4))
      #expect(!EchoProbe.isAnswer([], to: request, isIPv4: isIPv4))
    }
  }
}
