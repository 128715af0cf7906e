internal import CKapeDataPlane

/// Packets to be handed to an engine. They are in the pool; what is seen of them are spans over it.
public struct PacketBatch: ~Copyable {
  public static let maximumCapacity = Int(KDP_BATCH_CAPACITY)

  private let pool: PacketPool.Storage
  private let packets: UnsafeMutableBufferPointer<kdp_packet>
  private let paths: UnsafeMutableBufferPointer<kdp_path>
  var batch: kdp_batch

  /// At most `maximumCapacity` packets.
  public init(pool: borrowing PacketPool, capacity: Int = PacketBatch.maximumCapacity) {
    let capacity = max(1, min(capacity, Self.maximumCapacity))
    self.pool = pool.storage
    packets = .allocate(capacity: capacity)
    packets.initialize(repeating: kdp_packet())
    paths = .allocate(capacity: Int(KDP_BATCH_PATHS))
    paths.initialize(repeating: kdp_path())
    batch = kdp_batch(
      packet: packets.baseAddress, count: 0, capacity: UInt32(capacity), path: paths.baseAddress, path_count: 0,
      path_capacity: UInt16(paths.count))
  }

  deinit {
    var batch = batch
    kdp_batch_release(&batch, pool.pool)
    packets.deallocate()
    paths.deallocate()
  }

  public var count: Int { Int(batch.count) }
  public var isEmpty: Bool { batch.count == 0 }

  /// Copies a packet in, with `room` round it. False when the batch is full, the pool empty or the packet longer than
  /// 65,535 bytes.
  @discardableResult
  public mutating func append(
    copying bytes: RawSpan, room: PacketRoom = .none, attributes: PacketAttributes = PacketAttributes()
  ) -> Bool {
    guard bytes.byteCount <= Int(UInt16.max), batch.count < batch.capacity else { return false }
    var packet = kdp_packet()
    guard
      kdp_pool_take_packet(
        pool.pool, UInt32(room.head), UInt32(bytes.byteCount), UInt32(room.tail), &packet)
    else { return false }
    bytes.withUnsafeBytes { source in
      if !source.isEmpty {
        UnsafeMutableRawPointer(packet.data).copyMemory(from: source.baseAddress!, byteCount: source.count)
      }
    }
    return push(packet, attributes)
  }

  /// What packet `index` holds, valid during the call only.
  public borrowing func withPacket<Result: ~Copyable, Failure: Error>(
    _ index: Int, _ body: (RawSpan, PacketAttributes) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    precondition(index >= 0 && index < count)
    return try batch.withPacket(index, body)
  }

  /// The bytes of packet `index`, to be changed in place.
  public mutating func withMutablePacket<Result: ~Copyable, Failure: Error>(
    _ index: Int, _ body: (inout MutableRawSpan) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    precondition(index >= 0 && index < count)
    let packet = packets[index]
    var span = UnsafeMutableRawBufferPointer(start: packet.data, count: Int(packet.size)).mutableBytes
    return try body(&span)
  }

  /// Gives all packets back.
  public mutating func removeAll() {
    kdp_batch_release(&batch, pool.pool)
  }

  /// Takes over a packet with its use of a slot of the same pool. False, and the packet is released: it is full.
  mutating func push(_ packet: kdp_packet, _ attributes: PacketAttributes) -> Bool {
    var packet = packet
    packet.ecn = attributes.ecn
    packet.flags = attributes.flags.rawValue
    packet.path = 0
    if let path = attributes.path {
      var path = path.dataPlane
      packet.path = kdp_batch_path(&batch, &path)
    }
    if packet.path == UInt16.max || !kdp_batch_push(&batch, &packet) {
      kdp_pool_release(pool.pool, packet.slot)
      return false
    }
    return true
  }

  /// The first packets are an engine's now.
  mutating func dropConsumed(_ consumed: Int) {
    let rest = count - consumed
    for index in 0..<rest { packets[index] = packets[index + consumed] }
    batch.count = UInt32(rest)
    if rest == 0 { batch.path_count = 0 }
  }

  func belongs(to other: PacketPool.Storage) -> Bool { pool === other }
}

extension kdp_batch {
  func attributes(of packet: kdp_packet) -> PacketAttributes {
    var path: PacketPath?
    if packet.path < path_count, let paths = self.path { path = PacketPath(paths[Int(packet.path)]) }
    return PacketAttributes(path: path, ecn: packet.ecn, flags: .init(rawValue: packet.flags))
  }

  func withPacket<Result: ~Copyable, Failure: Error>(
    _ index: Int, _ body: (RawSpan, PacketAttributes) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let packet = self.packet[index]
    return try body(
      UnsafeRawBufferPointer(start: packet.data, count: Int(packet.size)).bytes, attributes(of: packet))
  }
}
