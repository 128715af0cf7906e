internal import CKapeDataPlane

/// A slab of memory that packets live in, as views into equal slots. Everything that is made of a pool keeps it alive. A
/// pool and what is made of it belong to one thread, or one actor, at a time.
public struct PacketPool: ~Copyable {
  /// Owns the C pool; shared by the batches and outputs that hold its slots, so that it outlives them.
  final class Storage {
    let pool: OpaquePointer

    init(slots: Int) throws(EngineStatus) {
      guard slots > 0, let count = UInt32(exactly: slots) else { throw .invalidArgument }
      var host = kdp_host_default()
      var pool: OpaquePointer?
      try EngineStatus.check(kdp_pool_create(count, &host, &pool))
      guard let pool else { throw .noMemory }
      self.pool = pool
    }

    deinit {
      kdp_pool_destroy(pool)
    }
  }

  let storage: Storage

  /// A slot is 68 KiB, and costs memory only once it is used. Small packets share slots.
  public init(slots: Int = 16) throws(EngineStatus) {
    storage = try Storage(slots: slots)
  }

  public var slotCount: Int { Int(kdp_pool_slot_count(storage.pool)) }
  public var freeSlotCount: Int { Int(kdp_pool_free_count(storage.pool)) }
  /// Most slots in use at once since creation.
  public var highWater: Int { Int(kdp_pool_high_water(storage.pool)) }
}
