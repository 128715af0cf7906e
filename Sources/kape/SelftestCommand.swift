import Glibc
import KapeCommandLine
import KapeControl
import KapeCrypto
import KapeProtocols

/// What can be tried without an interface, a socket or a privilege: two engines that talk to each other in memory.
struct SelftestCommand: Command {
  static let name = "selftest"
  static let summary = "run two engines against each other in memory"
  static let help = """
    usage: kape selftest

    Tests the ciphers, connects two WireGuard engines in memory, passes packets both ways, compares each with what was
    sent, and says how fast one core does it. Needs no privilege and no interface. Exit status 1 when anything is wrong.

    """
  static let syntax = CommandSyntax()

  static func run(_ arguments: [String]) async -> ExitCode {
    guard arguments.isEmpty else { return usage(arguments) }
    Console.write(Version.report(), to: STDOUT_FILENO)
    do throws(EngineStatus) {
      var pair = try EnginePair.make()
      let connect = try ContinuousClock().throwing { () throws(EngineStatus) in try pair.connect() }
      var bytes = 0
      let transfer = try ContinuousClock().throwing { () throws(EngineStatus) in
        for round in 0..<rounds { bytes += try pair.pass(round: round) }
      }
      let seconds = Double(transfer.components.seconds) + Double(transfer.components.attoseconds) / 1e18
      let hundredths = Int(Double(bytes) * 8 / seconds / 1e7)
      let fraction = hundredths % 100 < 10 ? "0\(hundredths % 100)" : "\(hundredths % 100)"
      let microseconds = connect.components.seconds * 1_000_000 + connect.components.attoseconds / 1_000_000_000_000
      Console.out("handshake   \(microseconds) us, both sides")
      Console.out("packets     \(rounds * EnginePair.batch * 2) both ways, each compared with what was sent")
      Console.out("throughput  \(hundredths / 100).\(fraction) Gbit/s sealed and opened on this core, in memory")
      return .done
    } catch {
      Console.error("self test failed: \(error)")
      return .failed
    }
  }

  private static let rounds = 2_000
}

extension ContinuousClock {
  fileprivate func throwing<Failure: Error>(_ body: () throws(Failure) -> Void) throws(Failure) -> Duration {
    let begin = now
    try body()
    return begin.duration(to: now)
  }
}

/// Two devices, each the other's peer, that share a pool.
private struct EnginePair: ~Copyable {
  static let batch = 64
  private static let size = 1_420

  private var near: WireGuardEngine
  private var far: WireGuardEngine
  private let pool: PacketPool
  private var output: EngineOutput
  private var inside: PacketBatch
  private var wire: PacketBatch
  private let nearEnd: PacketPath
  private let farEnd: PacketPath

  static func make() throws(EngineStatus) -> EnginePair {
    guard let nearPrefix = IPPrefix("10.0.0.1/32"), let farPrefix = IPPrefix("10.0.0.2/32") else {
      throw .invalidArgument
    }
    let nearAddress = SocketAddress(IPAddress(ipv4: 192, 0, 2, 1), port: 51820)
    let farAddress = SocketAddress(IPAddress(ipv4: 192, 0, 2, 2), port: 51820)
    let now = EngineTime.now()
    let pool = try PacketPool(slots: 16)
    var output = try EngineOutput(pool: pool)
    var near = try WireGuardEngine(now: now)
    var far = try WireGuardEngine(now: now)
    let nearKey = PrivateKey()
    let farKey = PrivateKey()
    let preshared = PresharedKey()
    try near.apply(
      change(nearKey, peer: farKey.publicKey, preshared, at: farAddress, farPrefix), into: &output, now: now)
    try far.apply(
      change(farKey, peer: nearKey.publicKey, preshared, at: nearAddress, nearPrefix), into: &output, now: now)
    output.removeAll()
    return EnginePair(
      near, far, pool, output, from: PacketPath(remote: nearAddress), to: PacketPath(remote: farAddress))
  }

  private init(
    _ near: consuming WireGuardEngine, _ far: consuming WireGuardEngine, _ pool: consuming PacketPool,
    _ output: consuming EngineOutput, from nearEnd: PacketPath, to farEnd: PacketPath
  ) {
    inside = PacketBatch(pool: pool)
    wire = PacketBatch(pool: pool)
    self.near = near
    self.far = far
    self.pool = pool
    self.output = output
    self.nearEnd = nearEnd
    self.farEnd = farEnd
  }

  private static func change(
    _ key: PrivateKey, peer: PublicKey, _ preshared: PresharedKey, at endpoint: SocketAddress, _ prefix: IPPrefix
  ) -> WireGuardInterfaceChange {
    var other = WireGuardPeerChange(publicKey: peer)
    other.presharedKey = preshared
    other.endpoint = endpoint
    other.allowedIPs = [WireGuardAllowedIPChange(prefix)]
    var change = WireGuardInterfaceChange()
    change.privateKey = key
    change.peers = [other]
    return change
  }

  /// The first packet brings about the handshake and waits for it.
  mutating func connect() throws(EngineStatus) {
    let now = EngineTime.now()
    inside.append(copying: Self.packet(toFar: true, number: 0).span.bytes, room: near.room)
    near.inside(&inside, into: &output, now: now)
    try carry(toFar: true, now)
    try carry(toFar: false, now)
    try carry(toFar: true, now)
    guard output.insideCount == 1 else { throw .handshakeTimeout }
    output.removeAll()
  }

  /// A batch each way; returns the bytes that arrived.
  mutating func pass(round: Int) throws(EngineStatus) -> Int {
    try pass(toFar: true, round) + pass(toFar: false, round)
  }

  private mutating func pass(toFar: Bool, _ round: Int) throws(EngineStatus) -> Int {
    let now = EngineTime.now()
    let packet = Self.packet(toFar: toFar, number: round)
    for _ in 0..<Self.batch { inside.append(copying: packet.span.bytes, room: near.room) }
    if toFar { near.inside(&inside, into: &output, now: now) } else { far.inside(&inside, into: &output, now: now) }
    try carry(toFar: toFar, now)
    guard output.insideCount == Self.batch else { throw .authenticationFailed }
    var arrived = 0
    try output.forEachInsidePacket { (bytes) throws(EngineStatus) in
      let same = bytes.withUnsafeBytes { arrived in
        packet.withUnsafeBytes { sent in
          guard let a = arrived.baseAddress, let b = sent.baseAddress else { return false }
          return arrived.count == sent.count && memcmp(a, b, sent.count) == 0
        }
      }
      guard same else { throw .malformed }
      arrived += bytes.byteCount
    }
    output.removeAll()
    return arrived
  }

  private mutating func carry(toFar: Bool, _ now: EngineTime) throws(EngineStatus) {
    let sender = toFar ? nearEnd : farEnd
    output.moveWire(to: &wire) { _ in PacketAttributes(path: sender) }
    guard !wire.isEmpty else { throw .handshakeTimeout }
    if toFar { far.outside(&wire, into: &output, now: now) } else { near.outside(&wire, into: &output, now: now) }
  }

  /// An IPv4 packet of protocol 253, for experiments (RFC 3692).
  private static func packet(toFar: Bool, number: Int) -> [UInt8] {
    var bytes = [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: size)
    bytes.replaceSubrange(
      0..<20,
      with: [0x45, 0, UInt8(size >> 8), UInt8(size & 0xff), 0, 0, 0, 0, 64, 253, 0, 0]
        + [10, 0, 0, toFar ? 1 : 2] + [10, 0, 0, toFar ? 2 : 1])
    return bytes
  }
}
