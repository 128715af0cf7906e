import KapeProtocols
import KapeTestSupport
import Testing

/// A program with an embedded tunnel and an address.
private struct Program: ~Copyable {
  var tunnel: EmbeddedTunnel<WireGuardEngine>
  let number: UInt8
  var datagrams: [[UInt8]] = []
  var delivered: [[UInt8]] = []
  var actions: [EngineAction.Kind] = []
  var rounds = 0

  var address: SocketAddress { Self.address(number) }

  private static func address(_ number: UInt8) -> SocketAddress {
    SocketAddress(IPAddress(ipv4: 192, 0, 2, number), port: 51820)
  }

  /// Number 1 or 2; knows the other one.
  init(_ number: UInt8, keepalive: UInt16 = 0) throws {
    let other = 3 - number
    var options = WireGuardEngine.Options()
    options.insideMTU = .max
    var tunnel = try EmbeddedTunnel(WireGuardEngine(options, now: EngineNode.start))
    let text = """
      [Interface]
      PrivateKey = \(number == 1 ? TestKeys.aPrivate : TestKeys.bPrivate)
      [Peer]
      PublicKey = \(number == 1 ? TestKeys.bPublic : TestKeys.aPublic)
      Endpoint = \(Self.address(other))
      AllowedIPs = 10.0.0.\(other)/32
      PersistentKeepalive = \(keepalive)
      """
    try tunnel.apply(WireGuardConfiguration.parse(text).get().change(), now: EngineNode.start)
    self.tunnel = tunnel
    self.number = number
  }

  mutating func run(now: EngineTime = EngineNode.start) {
    rounds += 1
    var datagrams: [[UInt8]] = []
    var delivered: [[UInt8]] = []
    var actions: [EngineAction.Kind] = []
    tunnel.run(
      now: now, send: { bytes, _ in datagrams.append(bytes.withUnsafeBytes { Array($0) }) },
      deliver: { bytes in delivered.append(bytes.withUnsafeBytes { Array($0) }) },
      action: { actions.append($0.kind) })
    self.datagrams += datagrams
    self.delivered += delivered
    self.actions += actions
  }

  mutating func send(_ packets: [[UInt8]]) {
    for packet in packets {
      while !tunnel.inside(packet.span.bytes) { run() }
    }
    run()
  }

  mutating func receive(from other: inout Program) {
    for datagram in other.datagrams {
      while !tunnel.outside(datagram.span.bytes, from: other.address) { run() }
    }
    other.datagrams = []
    run()
  }

  static func exchange(_ a: inout Program, _ b: inout Program) {
    a.run()
    b.run()
    while !a.datagrams.isEmpty || !b.datagrams.isEmpty {
      b.receive(from: &a)
      a.receive(from: &b)
    }
  }
}

private func packets(_ count: Int, size: Int, from: UInt8, to: UInt8) -> [[UInt8]] {
  (0..<count).map { index in
    let header: [UInt8] = [0x45, 0, UInt8(size >> 8), UInt8(size & 255), 0, 0, 0, 0, 64, 253, 0, 0]
    let start = header + [10, 0, 0, from, 10, 0, 0, to, UInt8(index >> 8), UInt8(index & 255)]
    return start + [UInt8](repeating: UInt8(index & 255), count: size - start.count)
  }
}

@Suite struct EmbeddedTunnelTests {
  /// More than a batch, and more than the pool has slots for.
  @Test(arguments: [(1000, 1300), (60, 60_000)])
  func burstsArriveInOrderAndWhole(_ burst: (count: Int, size: Int)) throws {
    var near = try Program(1)
    var far = try Program(2)
    near.send(packets(1, size: 100, from: 1, to: 2))
    Program.exchange(&near, &far)
    #expect(far.delivered.count == 1)
    #expect(near.actions.contains { if case .pathMTU(let path) = $0 { path.remote == far.address } else { false } })

    far.delivered = []
    near.rounds = 0
    let sent = packets(burst.count, size: burst.size, from: 1, to: 2)
    near.send(sent)
    #expect((2...burst.count / 3).contains(near.rounds))  // together, not one by one
    far.receive(from: &near)
    #expect(far.delivered == sent)
  }

  @Test func whatAChangeBringsAboutIsDueAtOnce() throws {
    var near = try Program(1, keepalive: 25)
    var due = near.tunnel.deadline
    #expect(due == 0)
    near.run()
    #expect(near.datagrams.map(\.count) == [148])
    due = near.tunnel.deadline
    let deadline = try #require(due)
    #expect(deadline > EngineNode.start.boot)
    near.run(now: EngineTime(boot: deadline, wall: EngineNode.start.wall))
    #expect(near.datagrams.map(\.count) == [148, 148])
    near.tunnel.update { engine, output in engine.networkChanged(into: &output, now: EngineNode.start) }
    near.run()
    let peers = near.tunnel.engine.peerCount
    #expect(peers == 1)
  }

  @Test func whatIsTooLongIsNotTaken() throws {
    var near = try Program(1)
    let long = [UInt8](repeating: 0, count: 65_536)
    let packetTaken = near.tunnel.inside(long.span.bytes)
    let datagramTaken = near.tunnel.outside(long.span.bytes, from: near.address)
    #expect(!packetTaken && !datagramTaken)
  }
}
