internal import CKapeDataPlane

/// What became of a call or a packet. Each value is also a counter (`EngineStatistics.statuses`).
public enum EngineStatus: Int, Error, CaseIterable, Hashable, Sendable {
  /// Done.
  case ok
  /// Nothing to do now; call again.
  case again
  /// The output is full; drain it and call again.
  case outFull
  /// No packet slot is free.
  case poolEmpty
  /// No memory.
  case noMemory
  /// A configured limit is reached.
  case limit
  /// An argument is out of range.
  case invalidArgument
  /// Not supported by this engine, build or kernel.
  case unsupported
  /// No such peer, session or ticket.
  case notFound
  /// It exists already.
  case exists
  /// Closed.
  case closed
  /// A system call failed.
  case system
  /// Shorter than its kind of message is.
  case tooShort
  /// Longer than its kind of message may be.
  case tooLong
  /// Cut by the kernel: larger than the receive buffer.
  case truncated
  /// Unknown message type.
  case unknownType
  /// Fields contradict each other.
  case malformed
  /// The authentication tag does not match.
  case authenticationFailed
  /// A counter seen before, or older than the replay window.
  case replayed
  /// Sealed with a key that is too old or used up.
  case keyExpired
  /// For a session or index that is not known here.
  case unknownSession
  /// From a public key that is not configured.
  case unknownPeer
  /// The first MAC of a handshake message does not match.
  case badMAC1
  /// Under load and without a valid cookie.
  case badMAC2
  /// A cookie reply that answers nothing of ours, or does not open.
  case badCookie
  /// Under load: a cookie was sent in place of an answer.
  case cookieSent
  /// Over the rate allowed to its source.
  case rateLimited
  /// An initiation not newer than the newest from that peer.
  case staleTimestamp
  /// Initiations of one peer too soon after another.
  case flood
  /// A public key of low order.
  case lowOrderKey
  /// A message that does not fit the state.
  case unexpectedMessage
  /// No private key is set.
  case noKey
  /// No peer has the destination among its prefixes.
  case noRoute
  /// The peer's endpoint is not known.
  case noEndpoint
  /// The inner packet is neither IPv4 nor IPv6, or its length is wrong.
  case notIP
  /// The inner source address is not among the peer's prefixes.
  case wrongSource
  /// Larger than the path lets through; an ICMP answer may have been sent.
  case tooBig
  /// Dropped while it waited for a handshake.
  case stagedDropped
  /// An empty packet.
  case keepalive
  /// No answer to any initiation within the attempt time.
  case handshakeTimeout
  /// An event was not taken in time and was overwritten.
  case eventsLost
  /// Congestion experienced outside on a packet that is not ECN capable inside.
  case ecnDropped
  /// A checksum that was to be completed or verified is wrong.
  case checksum
  /// The kernel refused to send: unreachable, refused or not permitted.
  case sendRefused
  /// The kernel refused to send: larger than the route allows.
  case sendTooBig
  /// The inside (a TUN, say) refused the packet.
  case insideRefused
  /// A known-answer self test failed.
  case selfTestFailed
  /// Given to lane 0, which counts what becomes of it.
  case handedOver
  /// No room to give it to lane 0.
  case handoverFull

  /// Whose fault it is.
  public enum Fault: Hashable, Sendable {
    /// An ordinary outcome.
    case none
    /// The other end, or someone who pretends to be it.
    case peer
    /// Loss, reordering, duplication, a path that changed.
    case network
    /// The program that uses the library.
    case caller
    /// This host: memory, system calls, limits, configuration.
    case local
  }

  /// The name in the C interface: "REPLAYED".
  public var name: String { String(cString: information.name) }
  /// For people.
  public var text: String { String(cString: information.text) }
  /// Whether a session on a datagram link cannot go on.
  public var isFatalOnDatagrams: Bool { information.fatal_on_datagram }
  /// Whether a session on a stream cannot go on.
  public var isFatalOnStreams: Bool { information.fatal_on_stream }

  public var fault: Fault {
    switch information.fault {
    case KDP_FAULT_PEER: .peer
    case KDP_FAULT_NETWORK: .network
    case KDP_FAULT_CALLER: .caller
    case KDP_FAULT_LOCAL: .local
    default: .none
    }
  }

  private var information: kdp_status_info {
    kdp_status_describe(kdp_status(rawValue: UInt32(rawValue))).pointee
  }

  init(_ status: kdp_status) {
    self = EngineStatus(rawValue: Int(status.rawValue)) ?? .unsupported
  }

  /// How many there are in the C interface.
  static var dataPlaneCount: Int { Int(KDP_STATUS_COUNT.rawValue) }

  static func check(_ status: kdp_status) throws(EngineStatus) {
    if status != KDP_OK { throw EngineStatus(status) }
  }
}

extension EngineStatus: CustomStringConvertible, CustomDebugStringConvertible {
  public var description: String { text }
  public var debugDescription: String { name }
}
