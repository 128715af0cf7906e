internal import CKapeDataPlane

/// The one contract of every protocol: bytes in, bytes out, time handed in. No call reads a clock, opens a socket or
/// waits. An engine of this interface has one lane: it belongs to one thread, or one actor, at a time.
///
///     engine.inside(&packets, into: &output, now: .now())     // IP packets from the host, sealed
///     engine.outside(&datagrams, into: &output, now: .now())  // datagrams from the network, opened
///     output.forEachWirePacket { bytes, attributes in ... }   // send these
///     output.forEachInsidePacket { bytes in ... }             // give these to the host
///     output.removeAll()
///     // sleep until engine.deadline, then engine.tick(into: &output, now: .now())
public protocol PacketEngine: ~Copyable {
  var handle: EngineHandle { get }
}

/// Owns an engine of the data plane; wiped with its last owner.
public final class EngineHandle {
  let engine: UnsafeMutablePointer<kdp_engine>
  let lane: UnsafeMutablePointer<kdp_lane>
  private var continuation: AsyncStream<EngineEvent>.Continuation?
  private var stream: AsyncStream<EngineEvent>?
  /// Events that the stream had no room for, told with the next one.
  private var dropped = 0

  /// Takes over `engine`.
  init(_ engine: UnsafeMutablePointer<kdp_engine>) throws(EngineStatus) {
    guard let lane = kdp_engine_lane(engine, 0) else {
      kdp_engine_destroy(engine)
      throw .unsupported
    }
    self.engine = engine
    self.lane = lane
  }

  deinit {
    continuation?.finish()
    kdp_engine_destroy(engine)
  }

  func events() -> EngineEvents {
    if let stream { return EngineEvents(stream: stream) }
    let (stream, continuation) = AsyncStream.makeStream(
      of: EngineEvent.self, bufferingPolicy: .bufferingNewest(EngineEvents.bufferSize))
    self.stream = stream
    self.continuation = continuation
    passEventsOn()
    return EngineEvents(stream: stream)
  }

  func nextEvent() -> EngineEvent? {
    var event = kdp_event()
    return kdp_engine_next_event(engine, &event) ? EngineEvent(event) : nil
  }

  /// After every call: what happened goes into the stream, if someone has asked for it.
  func passEventsOn() {
    guard let continuation else { return }
    while var event = nextEvent() {
      event.lost += dropped
      dropped = 0
      if case .dropped(let oldest) = continuation.yield(event) { dropped = oldest.lost + 1 }
    }
  }
}

extension PacketEngine where Self: ~Copyable {
  /// "wireguard".
  public var name: String { String(cString: kdp_engine_name(handle.engine)) }

  /// What a packet needs round it before `inside` takes it.
  public var room: PacketRoom { PacketRoom(kdp_engine_room(handle.engine, nil)) }

  /// When `tick` must be called, nanoseconds of the boot clock; nil: never. Ask again after every call.
  public var deadline: UInt64? {
    let deadline = kdp_engine_deadline(handle.lane)
    return deadline == .max ? nil : deadline
  }

  public var statistics: EngineStatistics {
    var statistics = kdp_statistics()
    kdp_engine_statistics(handle.engine, &statistics)
    return EngineStatistics(statistics)
  }

  /// Seals IP packets. Takes packets from the front of the batch and returns how many; what stays found no room in the
  /// output: carry that out and call again.
  @discardableResult
  public mutating func inside(
    _ batch: inout PacketBatch, into output: inout EngineOutput, now: EngineTime
  ) -> Int {
    precondition(batch.belongs(to: output.pool), "the batch and the output are of different pools")
    let consumed = Int(kdp_engine_inside(handle.lane, &batch.batch, output.out, now.dataPlane))
    batch.dropConsumed(consumed)
    handle.passEventsOn()
    return consumed
  }

  /// Opens datagrams, each with the path that it came by. Returns as `inside` does.
  @discardableResult
  public mutating func outside(
    _ batch: inout PacketBatch, into output: inout EngineOutput, now: EngineTime
  ) -> Int {
    precondition(batch.belongs(to: output.pool), "the batch and the output are of different pools")
    let consumed = Int(kdp_engine_outside(handle.lane, &batch.batch, output.out, now.dataPlane))
    batch.dropConsumed(consumed)
    handle.passEventsOn()
    return consumed
  }

  /// Does what is due.
  public mutating func tick(into output: inout EngineOutput, now: EngineTime) {
    kdp_engine_tick(handle.lane, output.out, now.dataPlane)
    handle.passEventsOn()
  }

  /// Once a round of the embedder's loop: nothing of an earlier call is looked at any more.
  public mutating func endRound(now: EngineTime) {
    kdp_lane_quiescent(handle.lane, now.dataPlane)
    handle.passEventsOn()
  }

  /// A new network, or awake from sleep: probe now.
  public mutating func networkChanged(into output: inout EngineOutput, now: EngineTime) {
    kdp_engine_network_changed(handle.lane, output.out, now.dataPlane)
    handle.passEventsOn()
  }

  /// A socket or connection is there. Engines over datagrams need not be told.
  public mutating func linkUp(
    _ link: UInt32, isStream: Bool, path: PacketPath, into output: inout EngineOutput, now: EngineTime
  ) {
    var path = path.dataPlane
    kdp_engine_link_up(
      handle.lane, link, isStream ? KDP_LINK_STREAM : KDP_LINK_DATAGRAM, &path, output.out, now.dataPlane)
    handle.passEventsOn()
  }

  /// A stream takes so many bytes more: an engine seals only what finds room.
  public mutating func linkRoom(_ link: UInt32, bytes: Int, into output: inout EngineOutput, now: EngineTime) {
    kdp_engine_link_room(handle.lane, link, max(0, bytes), output.out, now.dataPlane)
    handle.passEventsOn()
  }

  /// It is gone; `error` is the system's number, 0: closed in order.
  public mutating func linkDown(_ link: UInt32, error: Int32 = 0, into output: inout EngineOutput, now: EngineTime) {
    kdp_engine_link_down(handle.lane, link, error, output.out, now.dataPlane)
    handle.passEventsOn()
  }

  /// The largest IP packet that goes by a path; nil: not known any more.
  public mutating func setPathMTU(_ bytes: UInt16?, of path: PacketPath, now: EngineTime) {
    var path = path.dataPlane
    kdp_engine_path_mtu(handle.lane, &path, bytes ?? 0, now.dataPlane)
    handle.passEventsOn()
  }

  public mutating func setInsideMTU(_ bytes: UInt16) {
    kdp_engine_set_inside_mtu(handle.engine, bytes)
  }

  /// The events as they come, for one reader. From the first call of this on they go there, and `nextEvent` has none.
  public var events: EngineEvents { handle.events() }

  /// The next event, for those who ask between calls; nil: none now.
  public mutating func nextEvent() -> EngineEvent? { handle.nextEvent() }
}
