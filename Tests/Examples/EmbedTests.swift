import KapeProtocols
import Testing

private let server = SocketAddress(IPAddress(ipv4: 192, 0, 2, 2), port: 51820)
private let client = SocketAddress(IPAddress(ipv4: 192, 0, 2, 1), port: 40000)

private let clientFile = """
  [Interface]
  PrivateKey = AKsOlH9cqm9TBCCG0B7mndns9sq6YEaab9NOC52g+kg=
  [Peer]
  PublicKey = I2vw8FnZyVTLSKulnurfxTLpMnpkhhbeqaeI8oC0Mkc=
  Endpoint = 192.0.2.2:51820
  AllowedIPs = 10.0.0.2/32
  """

private let serverFile = """
  [Interface]
  PrivateKey = oOVIheL46MDVaXMfaj/WyMfrHetnsQzUgvZofXccyWw=
  [Peer]
  PublicKey = 8TXhAVhUfR6Zd5E5oMLzXP4rXJpbLA3Y0067iYFbgmI=
  AllowedIPs = 10.0.0.1/32
  """

/// The other end: it sends each packet back with the addresses swapped.
private struct Remote: ~Copyable {
  private var engine: WireGuardEngine
  private var output: EngineOutput
  private var batch: PacketBatch
  private(set) var arrived: [[UInt8]] = []

  init() throws {
    let pool = try PacketPool()
    var output = try EngineOutput(pool: pool)
    var engine = try WireGuardEngine(now: .now())
    try engine.apply(WireGuardConfiguration.parse(serverFile).get().change(), into: &output, now: .now())
    self.engine = engine
    self.output = output
    batch = PacketBatch(pool: pool)
  }

  mutating func receive(_ datagram: RawSpan) -> [[UInt8]] {
    batch.append(copying: datagram, attributes: .init(path: .init(remote: client)))
    engine.outside(&batch, into: &output, now: .now())
    var packets: [[UInt8]] = []
    output.forEachInsidePacket { bytes in packets.append(bytes.withUnsafeBytes { Array($0) }) }
    var datagrams = takeWire()
    for packet in packets {
      arrived.append(packet)
      let answer = swapped(packet)
      batch.append(copying: answer.span.bytes, room: engine.room)
      engine.inside(&batch, into: &output, now: .now())
      datagrams += takeWire()
    }
    return datagrams
  }

  private mutating func takeWire() -> [[UInt8]] {
    var datagrams: [[UInt8]] = []
    output.forEachWirePacket { bytes, _ in datagrams.append(bytes.withUnsafeBytes { Array($0) }) }
    output.removeAll()
    return datagrams
  }
}

private func swapped(_ packet: [UInt8]) -> [UInt8] {
  Array(packet[..<12] + packet[16..<20] + packet[12..<16] + packet[20...])
}

/// A program whose network is one remote engine and whose only packet is `request`; it stops when nothing is to come.
private final class OneRemote: EmbeddingHost {
  private var events: [EmbeddingEvent]
  private var remote: Remote
  private(set) var deadlines: [UInt64?] = []
  private(set) var delivered: [[UInt8]] = []
  var arrived: [[UInt8]] { remote.arrived }

  init(request: [UInt8]) throws {
    events = [.packet(request), .deadline]
    remote = try Remote()
  }

  func wait(until deadline: UInt64?) -> EmbeddingEvent? {
    deadlines.append(deadline)
    return events.isEmpty ? nil : events.removeFirst()
  }

  func send(_ datagram: RawSpan, to path: PacketPath?) {
    #expect(path?.remote == server)
    for answer in remote.receive(datagram) { events.insert(.datagram(answer, from: server), at: events.count - 1) }
  }

  func deliver(_ packet: RawSpan) {
    delivered.append(packet.withUnsafeBytes { Array($0) })
  }
}

@Suite struct EmbedTests {
  @Test func theExampleCarriesAPacketThereAndBack() throws {
    var request: [UInt8] = [0x45, 0, 0, 24, 0, 0, 0, 0, 64, 253, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 1, 2, 3, 4]
    let sum = stride(from: 0, to: 20, by: 2).reduce(0) { $0 + Int(request[$1]) << 8 + Int(request[$1 + 1]) }
    request[10] = UInt8(~(sum + sum >> 16) >> 8 & 255)
    request[11] = UInt8(~(sum + sum >> 16) & 255)
    let host = try OneRemote(request: request)
    try embed(clientFile, in: host)
    #expect(host.arrived == [request])
    #expect(host.delivered == [swapped(request)])
    #expect(host.deadlines.count >= 4)
    #expect(host.deadlines.last != .some(nil))
  }

  @Test func aWrongFileIsRefusedWithItsReasons() throws {
    let host = try OneRemote(request: [])
    #expect(throws: ConfigurationError.self) { try embed("[Interface]\nPrivateKy = x\n", in: host) }
  }
}
