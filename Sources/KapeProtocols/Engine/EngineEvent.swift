internal import CKapeDataPlane

/// What an engine tells its owner: plain, without secrets.
public struct EngineEvent: Hashable, Sendable {
  public enum Kind: Hashable, Sendable {
    /// Attempts are counted from 1.
    case handshakeStarted(attempt: Int)
    /// The first session of a peer that had none.
    case connected
    /// A new session replaced one.
    case rekeyed
    /// Gave up; the status says why.
    case handshakeFailed(attempts: Int)
    /// The last session expired; the status says why.
    case disconnected
    case endpointChanged(SocketAddress)
    /// Taken from another peer by this one.
    case prefixMoved(IPPrefix, from: UInt64)
    /// A new local port was asked for; with status `unsupported`: it would have been, but a port is configured.
    case rebind
    /// The peer's endpoint name should be looked up again.
    case resolve
    case underLoad(Bool)
    /// The wall clock is behind the newest stamp sent, by so many nanoseconds.
    case clockBack(UInt64)
    /// One that this version has no name for.
    case other(Int)
  }

  public let kind: Kind
  public let status: EngineStatus
  /// Events that were lost before this one, because nobody took them.
  public internal(set) var lost: Int
  /// When, nanoseconds of the boot clock.
  public let boot: UInt64
  /// The engine's number of the peer, 0: none; never used twice in one engine.
  public let peer: UInt64

  init(_ event: kdp_event) {
    kind = Self.kind(event)
    status = EngineStatus(rawValue: Int(event.status)) ?? .unsupported
    lost = Int(event.lost)
    boot = event.boot
    peer = event.peer
  }

  private static func kind(_ event: kdp_event) -> Kind {
    switch UInt32(event.kind) {
    case KDP_EVENT_HANDSHAKE_STARTED.rawValue: return .handshakeStarted(attempt: Int(clamping: event.value))
    case KDP_EVENT_CONNECTED.rawValue: return .connected
    case KDP_EVENT_REKEYED.rawValue: return .rekeyed
    case KDP_EVENT_HANDSHAKE_FAILED.rawValue: return .handshakeFailed(attempts: Int(clamping: event.value))
    case KDP_EVENT_DISCONNECTED.rawValue: return .disconnected
    case KDP_EVENT_ENDPOINT_CHANGED.rawValue:
      if let address = SocketAddress(dataPlane: event.address) { return .endpointChanged(address) }
    case KDP_EVENT_PREFIX_MOVED.rawValue:
      if let address = SocketAddress(dataPlane: event.address)?.address,
        let prefix = IPPrefix(address, length: Int(clamping: event.value))
      {
        return .prefixMoved(prefix, from: event.other)
      }
    case KDP_EVENT_REBIND.rawValue: return .rebind
    case KDP_EVENT_RESOLVE.rawValue: return .resolve
    case KDP_EVENT_UNDER_LOAD.rawValue: return .underLoad(event.value != 0)
    case KDP_EVENT_CLOCK_BACK.rawValue: return .clockBack(event.value)
    default: break
    }
    return .other(Int(event.kind))
  }
}

/// The events of one engine, as they come; ends with the engine. Up to 256 wait for whoever reads; then the oldest go,
/// and the next event says how many did.
public struct EngineEvents: AsyncSequence, Sendable {
  public typealias Element = EngineEvent
  public typealias AsyncIterator = AsyncStream<EngineEvent>.Iterator
  static let bufferSize = 256

  let stream: AsyncStream<EngineEvent>

  public func makeAsyncIterator() -> AsyncStream<EngineEvent>.Iterator {
    stream.makeAsyncIterator()
  }
}
