internal import CKapeDataPlane

/// What calls of an engine produce: packets for the wire, packets for the inside, and actions. Carry it out, then empty
/// it; an engine that finds it full consumes less.
public struct EngineOutput: ~Copyable {
  let pool: PacketPool.Storage
  private let storage: OpaquePointer

  public init(pool: borrowing PacketPool) throws(EngineStatus) {
    self.pool = pool.storage
    var host = kdp_host_default()
    var storage: OpaquePointer?
    try EngineStatus.check(kdp_out_create(pool.storage.pool, &host, &storage))
    guard let storage else { throw .noMemory }
    self.storage = storage
  }

  deinit {
    kdp_out_destroy(storage)
  }

  var out: UnsafeMutablePointer<kdp_out> { kdp_out_of(storage) }

  public var wireCount: Int { Int(out.pointee.wire.count) }
  public var insideCount: Int { Int(out.pointee.inside.count) }
  public var isEmpty: Bool { wireCount == 0 && insideCount == 0 && out.pointee.action_count == 0 }

  /// Datagrams to be sent, in order; the spans are valid during the call only.
  public borrowing func forEachWirePacket<Failure: Error>(
    _ body: (RawSpan, PacketAttributes) throws(Failure) -> Void
  ) throws(Failure) {
    for index in 0..<wireCount { try out.pointee.wire.withPacket(index, body) }
  }

  /// IP packets to be given to the inside, in order; the spans are valid during the call only.
  public borrowing func forEachInsidePacket<Failure: Error>(
    _ body: (RawSpan) throws(Failure) -> Void
  ) throws(Failure) {
    for index in 0..<insideCount {
      try out.pointee.inside.withPacket(index) { (bytes, _) throws(Failure) in try body(bytes) }
    }
  }

  /// In order; each applies after so many packets of the wire.
  public var actions: [EngineAction] {
    (0..<Int(out.pointee.action_count)).compactMap { EngineAction(out.pointee.action[$0]) }
  }

  /// Moves the datagrams into a batch of the same pool, without copying; `attributes` says how they arrive there (from
  /// whom, say). What finds no room is dropped. For engines that talk to each other in one program.
  public mutating func moveWire(
    to batch: inout PacketBatch, _ attributes: (PacketAttributes) -> PacketAttributes
  ) {
    precondition(batch.belongs(to: pool), "the batch is of another pool")
    let wire = out.pointee.wire
    for index in 0..<Int(wire.count) {
      _ = batch.push(wire.packet[index], attributes(wire.attributes(of: wire.packet[index])))
    }
    out.pointee.wire.count = 0
    out.pointee.wire.path_count = 0
  }

  /// Gives the inside's packets back, for those who carry out the two directions at different times.
  public mutating func removeInside() {
    kdp_batch_release(&out.pointee.inside, pool.pool)
  }

  /// Gives all packets back and forgets the actions.
  public mutating func removeAll() {
    kdp_batch_release(&out.pointee.wire, pool.pool)
    kdp_batch_release(&out.pointee.inside, pool.pool)
    out.pointee.action_count = 0
  }
}

/// Something that an engine asks of whoever has the sockets.
public struct EngineAction: Hashable, Sendable {
  public enum Kind: Hashable, Sendable {
    /// Open a link to the path's remote.
    case open(PacketPath)
    case close(link: UInt32)
    /// Bind the link's socket anew, to another local port.
    case rebind(link: UInt32)
    /// Look up the name that the peer's endpoint came from again.
    case resolve(peer: UInt64)
    /// Ask what the path's route takes and say it with `setPathMTU`; a host that cannot tell leaves it out.
    case pathMTU(PacketPath)
  }

  public let kind: Kind
  /// It applies after so many packets of the output's wire.
  public let wireCount: Int

  /// nil for what concerns engines with more than one lane only.
  init?(_ action: kdp_action) {
    wireCount = Int(action.wire_count)
    switch UInt32(action.kind) {
    case KDP_ACTION_OPEN.rawValue:
      guard let path = PacketPath(action.path) else { return nil }
      kind = .open(path)
    case KDP_ACTION_CLOSE.rawValue: kind = .close(link: action.path.link)
    case KDP_ACTION_REBIND.rawValue: kind = .rebind(link: action.path.link)
    case KDP_ACTION_RESOLVE.rawValue: kind = .resolve(peer: action.peer)
    case KDP_ACTION_PATH_MTU.rawValue:
      guard let path = PacketPath(action.path) else { return nil }
      kind = .pathMTU(path)
    default: return nil
    }
  }
}
