internal import CKapeDataPlane

/// Where a datagram came from or goes to.
public struct PacketPath: Hashable, Sendable {
  /// The embedder's number of a socket; not used again while an engine knows it.
  public var link: UInt32
  public var remote: SocketAddress
  /// nil: the system chooses. Its port is not used.
  public var local: SocketAddress?
  /// The interface to leave by or that it came in on; 0: the system chooses.
  public var interfaceIndex: UInt32

  public init(link: UInt32 = 0, remote: SocketAddress, local: SocketAddress? = nil, interfaceIndex: UInt32 = 0) {
    self.link = link
    self.remote = remote
    self.local = local
    self.interfaceIndex = interfaceIndex
  }

  /// nil when it has no remote address.
  init?(_ path: kdp_path) {
    guard let remote = SocketAddress(dataPlane: path.remote) else { return nil }
    self.init(
      link: path.link, remote: remote, local: SocketAddress(dataPlane: path.local), interfaceIndex: path.ifindex)
  }

  var dataPlane: kdp_path {
    kdp_path(
      link: link, ifindex: interfaceIndex, remote: remote.dataPlane, local: local?.dataPlane ?? kdp_address())
  }
}

/// What a packet carries besides its bytes.
public struct PacketAttributes: Hashable, Sendable {
  public struct Flags: OptionSet, Hashable, Sendable {
    public let rawValue: UInt8

    public init(rawValue: UInt8) {
      self.rawValue = rawValue
    }

    /// Must not be fragmented on the way.
    public static let dontFragment = Flags(rawValue: 1 << 0)
    /// Goes before data when room is short.
    public static let control = Flags(rawValue: 1 << 1)
    /// To be sent three times.
    public static let thrice = Flags(rawValue: 1 << 2)
    /// Same size and path as the one before it: may share a segmented send.
    public static let sameSize = Flags(rawValue: 1 << 3)
  }

  /// nil for packets of the inside.
  public var path: PacketPath?
  /// The ECN field of the outer IP header, 0 to 3 (RFC 6040).
  public var ecn: UInt8
  public var flags: Flags

  public init(path: PacketPath? = nil, ecn: UInt8 = 0, flags: Flags = []) {
    self.path = path
    self.ecn = ecn
    self.flags = flags
  }
}

/// How much room an engine needs round a packet.
public struct PacketRoom: Hashable, Sendable {
  /// Free bytes before and after the content.
  public var head: Int
  public var tail: Int
  /// Most bytes that a packet grows by on the wire.
  public var growth: Int
  public var insideMTU: Int
  /// Packets that the session's peer tolerates out of order.
  public var reorderWindow: Int

  /// None: for packets from the wire, which only get smaller.
  public static let none = PacketRoom(kdp_room())

  init(_ room: kdp_room) {
    head = Int(room.head)
    tail = Int(room.tail)
    growth = Int(room.growth)
    insideMTU = Int(room.inside_mtu)
    reorderWindow = Int(room.reorder_window)
  }
}
