import KapeCrypto
import KapeProtocols

/// A WireGuard device at an address, with what has arrived inside it.
struct EngineNode: ~Copyable {
  static let start = EngineTime(boot: 1_000_000_000_000, wall: 1_700_000_000_000_000_000)

  var engine: WireGuardEngine
  var output: EngineOutput
  var outgoing: PacketBatch
  var incoming: PacketBatch
  let address: SocketAddress
  var delivered: [[UInt8]] = []

  init(_ number: UInt8, pool: borrowing PacketPool, options: WireGuardEngine.Options = .init()) throws {
    let engine = try WireGuardEngine(options, now: Self.start)
    let output = try EngineOutput(pool: pool)
    self.engine = engine
    self.output = output
    outgoing = PacketBatch(pool: pool)
    incoming = PacketBatch(pool: pool)
    address = SocketAddress(IPAddress(ipv4: 192, 0, 2, number), port: 51820)
  }

  mutating func send(_ packet: [UInt8], now: EngineTime) {
    outgoing.append(copying: packet.span.bytes, room: engine.room)
    engine.inside(&outgoing, into: &output, now: now)
  }

  mutating func takeDelivered() {
    output.forEachInsidePacket { bytes in delivered.append(bytes.withUnsafeBytes { Array($0) }) }
    output.removeInside()
  }

  /// What is for the wire goes to `other`; returns how many datagrams that was.
  mutating func passWire(to other: inout EngineNode, now: EngineTime) -> Int {
    let path = PacketPath(remote: address)
    output.moveWire(to: &other.incoming) { PacketAttributes(path: path, ecn: $0.ecn) }
    takeDelivered()
    output.removeAll()
    let count = other.incoming.count
    while !other.incoming.isEmpty {
      other.engine.outside(&other.incoming, into: &other.output, now: now)
      other.takeDelivered()
    }
    return count
  }

  /// Back and forth until nothing is on the wire.
  static func exchange(_ a: inout EngineNode, _ b: inout EngineNode, now: EngineTime) -> Int {
    var datagrams = 0
    while true {
      let count = a.passWire(to: &b, now: now) + b.passWire(to: &a, now: now)
      if count == 0 { return datagrams }
      datagrams += count
    }
  }
}

/// An IPv4 packet of protocol 253 (RFC 3692, experiments).
func ipPacket(from source: String, to destination: String, size: Int) -> [UInt8] {
  var packet = [UInt8](repeating: 0, count: size)
  packet[0] = 0x45
  packet[2] = UInt8(size >> 8)
  packet[3] = UInt8(size & 255)
  packet[8] = 64
  packet[9] = 253
  for (index, part) in (source.split(separator: ".") + destination.split(separator: ".")).enumerated() {
    packet[12 + index] = UInt8(part) ?? 0
  }
  var sum = stride(from: 0, to: 20, by: 2).reduce(0) { $0 + Int(packet[$1]) << 8 + Int(packet[$1 + 1]) }
  while sum >> 16 != 0 { sum = (sum & 0xFFFF) + sum >> 16 }
  packet[10] = UInt8((~sum >> 8) & 255)
  packet[11] = UInt8(~sum & 255)
  for index in 20..<max(size, 20) { packet[index] = UInt8(truncatingIfNeeded: index &* 7) }
  return packet
}
