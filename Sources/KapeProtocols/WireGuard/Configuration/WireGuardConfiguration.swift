public import KapeCrypto

/// What a wg-quick file says: wg(8)'s own keys and those that wg-quick(8) adds. Names and meanings are theirs.
public struct WireGuardConfiguration: Equatable, Sendable {
  public var interface: Interface
  /// One of each public key, in the order of the file.
  public var peers: [Peer]

  public init(interface: Interface = Interface(), peers: [Peer] = []) {
    self.interface = interface
    self.peers = peers
  }

  public struct Interface: Equatable, Sendable {
    /// nil: the interface has none until someone sets it (a PostUp command, say).
    public var privateKey: PrivateKey?
    /// 0: any.
    public var listenPort: UInt16 = 0
    /// 0: none ("off").
    public var firewallMark: UInt32 = 0
    public var addresses: [InterfaceAddress] = []
    public var dnsServers: [ScopedAddress] = []
    public var dnsSearchDomains: [String] = []
    /// nil: from the route to the endpoints.
    public var mtu: UInt16?
    public var table: RoutingTable = .automatic
    /// Shell commands, in order; `%i` stands for the interface's name.
    public var preUp: [String] = []
    public var postUp: [String] = []
    public var preDown: [String] = []
    public var postDown: [String] = []
    public var saveConfig = false

    public init() {}
  }

  public struct Peer: Equatable, Sendable {
    public var publicKey: PublicKey
    /// nil: none (a key that is all zero is none).
    public var presharedKey: PresharedKey?
    /// Without repeats; a prefix belongs to one peer only.
    public var allowedIPs: [IPPrefix] = []
    public var endpoint: WireGuardEndpoint?
    /// Seconds; 0: off.
    public var persistentKeepalive: UInt16 = 0

    public init(publicKey: PublicKey) {
      self.publicKey = publicKey
    }
  }

  public enum RoutingTable: Hashable, Sendable {
    /// The main table, and one of its own for default routes.
    case automatic
    /// No routes.
    case off
    case number(UInt32)
    /// A name of /etc/iproute2/rt_tables.
    case name(String)
  }

  /// Whether some peer takes all traffic of that family: a prefix of length 0, as wg-quick decides it.
  public func isFullTunnel(_ family: IPAddress.Family) -> Bool {
    peers.contains { $0.allowedIPs.contains { $0.isDefault && $0.address.family == family } }
  }
}
