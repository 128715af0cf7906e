internal import CKapeDataPlane

/// Counters that mean the same for every protocol. They only rise.
public struct EngineStatistics: Hashable, Sendable {
  public struct Traffic: Hashable, Sendable {
    public var packets: UInt64
    public var bytes: UInt64

    init(_ traffic: kdp_traffic) {
      packets = traffic.packets
      bytes = traffic.bytes
    }
  }

  /// IP packets taken from the inside, and given to it.
  public var insideIn: Traffic
  public var insideOut: Traffic
  /// Authenticated messages from the wire, and messages to it: whole message bytes, handshakes and keepalives included.
  public var wireIn: Traffic
  public var wireOut: Traffic
  /// Completed, in both roles.
  public var handshakes: UInt64
  /// First messages sent.
  public var handshakeTries: UInt64
  public var keyChanges: UInt64
  /// Endpoints that moved with an authenticated packet.
  public var roams: UInt64
  /// How often each status occurred; those that never did are left out.
  public var statuses: [EngineStatus: UInt64]

  init(_ statistics: kdp_statistics) {
    insideIn = Traffic(statistics.inside_in)
    insideOut = Traffic(statistics.inside_out)
    wireIn = Traffic(statistics.wire_in)
    wireOut = Traffic(statistics.wire_out)
    handshakes = statistics.handshakes
    handshakeTries = statistics.handshake_tries
    keyChanges = statistics.key_changes
    roams = statistics.roams
    statuses = [:]
    withUnsafeBytes(of: statistics.status) { bytes in
      let counters = bytes.bindMemory(to: UInt64.self)
      for status in EngineStatus.allCases where status.rawValue < counters.count && counters[status.rawValue] != 0 {
        statuses[status] = counters[status.rawValue]
      }
    }
  }
}

/// What an engine may use; 0 is the protocol's default.
public struct EngineLimits: Hashable, Sendable {
  /// Most peers or sessions.
  public var peers: UInt32 = 0
  /// Slots for packets that wait for a handshake.
  public var stagedPackets: UInt32 = 0
  /// Handshakes in progress at once.
  public var handshakes: UInt32 = 0
  /// Asymmetric operations in one call.
  public var handshakesPerCall: UInt32 = 0

  public init() {}

  var dataPlane: kdp_limits {
    var limits = kdp_limits()
    limits.peers = peers
    limits.lanes = 1
    limits.staged_packets = stagedPackets
    limits.handshakes = handshakes
    limits.handshakes_per_call = handshakesPerCall
    return limits
  }
}
