/// An engine as one object, for a program with packets and a socket of its own: hand in what there is, `run`, sleep
/// until `deadline`. Holds the pool, the batches and the output; belongs to one thread, or one actor, at a time.
public struct EmbeddedTunnel<Engine: PacketEngine & ~Copyable>: ~Copyable {
  /// May be asked at any time. What changes it and produces output goes through `update`.
  public private(set) var engine: Engine
  private let pool: PacketPool
  private var output: EngineOutput
  private var packets: PacketBatch
  private var datagrams: PacketBatch

  public init(_ engine: consuming Engine) throws(EngineStatus) {
    let pool = try PacketPool(slots: 32)
    output = try EngineOutput(pool: pool)
    packets = PacketBatch(pool: pool)
    datagrams = PacketBatch(pool: pool)
    self.pool = pool
    self.engine = engine
  }

  /// Hands in an IP packet; it is sealed by the next `run`, together with others. False: there is no room before that,
  /// or it is longer than 65,535 bytes.
  @discardableResult
  public mutating func inside(_ packet: RawSpan) -> Bool {
    hasSlots && packets.append(copying: packet, room: engine.room)
  }

  /// Hands in a datagram with the path that it came by and, where they are known, ECN and flags; as `inside`.
  @discardableResult
  public mutating func outside(_ datagram: RawSpan, attributes: PacketAttributes) -> Bool {
    hasSlots && datagrams.append(copying: datagram, attributes: attributes)
  }

  @discardableResult
  public mutating func outside(_ datagram: RawSpan, from sender: SocketAddress) -> Bool {
    outside(datagram, attributes: PacketAttributes(path: PacketPath(remote: sender)))
  }

  /// For calls of the engine that may produce output: a configuration, a change of the network. `run` carries it out.
  public mutating func update<Result: ~Copyable, Failure: Error>(
    _ body: (inout Engine, inout EngineOutput) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(&engine, &output)
  }

  /// A round: consumes what was handed in, does what is due, and gives out what that and `update` have brought about.
  /// Spans are valid during the call only. Actions may be left alone.
  public mutating func run(
    now: EngineTime, send: (RawSpan, PacketAttributes) -> Void, deliver: (RawSpan) -> Void,
    action: (EngineAction) -> Void = { _ in }
  ) {
    carryOut(send, deliver, action)
    while !datagrams.isEmpty {
      engine.outside(&datagrams, into: &output, now: now)
      carryOut(send, deliver, action)
    }
    while !packets.isEmpty {
      engine.inside(&packets, into: &output, now: now)
      carryOut(send, deliver, action)
    }
    if let deadline = engine.deadline, deadline <= now.boot {
      engine.tick(into: &output, now: now)
      carryOut(send, deliver, action)
    }
    engine.endRound(now: now)
  }

  /// When `run` is to be called at the latest, nanoseconds of the boot clock: 0 when something waits already, nil: never.
  public var deadline: UInt64? {
    packets.isEmpty && datagrams.isEmpty && output.isEmpty ? engine.deadline : 0
  }

  /// Some are left to the engine, for packets of its own.
  private var hasSlots: Bool { pool.freeSlotCount > 8 }

  private mutating func carryOut(
    _ send: (RawSpan, PacketAttributes) -> Void, _ deliver: (RawSpan) -> Void, _ action: (EngineAction) -> Void
  ) {
    var actions = output.actions[...]
    var sent = 0
    output.forEachWirePacket { bytes, attributes in
      while let next = actions.first, next.wireCount <= sent { action(actions.removeFirst()) }
      send(bytes, attributes)
      sent += 1
    }
    actions.forEach(action)
    output.forEachInsidePacket(deliver)
    output.removeAll()
  }
}

extension EmbeddedTunnel where Engine == WireGuardEngine {
  /// Applies a change whole, or throws and leaves everything as it was.
  public mutating func apply(_ change: WireGuardInterfaceChange, now: EngineTime) throws(EngineStatus) {
    try engine.apply(change, into: &output, now: now)
  }
}
