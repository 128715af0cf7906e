/// What the system gives a tunnel: an interface with addresses, routes and resolvers, and sockets that go past it. The
/// session and its controllers share one. Calls may take long; whoever calls has a deadline, and what comes back after it
/// is closed.
public protocol SystemTunnel: AnyObject, Sendable {
  /// Makes the interface with these settings, or gives it them: the old ones hold until the new ones do, equal ones
  /// change nothing, and a failure leaves the old ones in place. Throws `PacketTunnelError.tunnelSetupFailed`.
  func establish(_ settings: PacketTunnelInterfaceSettings) async throws -> PacketTunnelInterface

  /// Takes the interface down, at a pause and at the end of a session. Without one, nothing.
  func close() async

  /// A socket whose packets go past the tunnel.
  func makeSocket(_ kind: PacketTunnelSocketKind) async throws -> PacketTunnelSocket

  /// Holds all traffic back until an interface is established, where a kill switch asks for that; at the start of a
  /// session and at a resume. Nothing unless implemented.
  func raiseNetworkLock() async throws

  /// Lets it go again, at a pause and at the end.
  func dropNetworkLock() async
}

extension SystemTunnel {
  public func raiseNetworkLock() async throws {}
  public func dropNetworkLock() async {}
}

/// The network that a tunnel's interface is to have.
public struct PacketTunnelInterfaceSettings: Hashable, Sendable {
  /// An address with the length of its network's prefix, or a destination.
  public struct Prefix: Hashable, Sendable, CustomStringConvertible {
    public var address: IpAddress
    public var length: Int

    public init(_ address: IpAddress, length: Int) {
      self.address = address
      self.length = length
    }

    /// The address alone: /32 or /128.
    public init(host address: IpAddress) {
      self.address = address
      length = if case .v4 = address { 32 } else { 128 }
    }

    public var description: String { "\(address)/\(length)" }
  }

  /// The server's address outside the tunnel.
  public var remoteAddress: IpAddress
  public var addresses: [Prefix]
  /// Destinations that the tunnel takes.
  public var includedRoutes: [Prefix]
  /// Destinations that go past it although a wider included one contains them.
  public var excludedRoutes: [Prefix]
  /// Resolvers in the order of use; those inside the tunnel get a route of their own.
  public var dnsServers: [IpAddress]
  public var dnsSearchDomains: [String]
  /// The server's private address, which gets a route of its own.
  public var gateway: IpAddress?
  /// Bytes of the largest packet inside.
  public var mtu: Int

  public init(
    remoteAddress: IpAddress, addresses: [Prefix], includedRoutes: [Prefix], excludedRoutes: [Prefix] = [],
    dnsServers: [IpAddress] = [], dnsSearchDomains: [String] = [], gateway: IpAddress? = nil, mtu: Int
  ) {
    self.remoteAddress = remoteAddress
    self.addresses = addresses
    self.includedRoutes = includedRoutes
    self.excludedRoutes = excludedRoutes
    self.dnsServers = dnsServers
    self.dnsSearchDomains = dnsSearchDomains
    self.gateway = gateway
    self.mtu = mtu
  }

  /// Everything of both families.
  public static let everything = [
    Prefix(.v4(ipV4: "0.0.0.0"), length: 0), Prefix(.v6(ipV6: "::"), length: 0),
  ]
}

/// An interface that is up.
public struct PacketTunnelInterface: Sendable {
  /// Reads and writes the packets. A descriptor of the taker's own, to be closed by it: closing it leaves the interface.
  public var descriptor: Int32
  public var name: String

  public init(descriptor: Int32, name: String) {
    self.descriptor = descriptor
    self.name = name
  }
}

/// A socket past the tunnel, neither bound nor connected, non-blocking. The taker's own, to be closed by it.
public struct PacketTunnelSocket: Sendable {
  public var descriptor: Int32

  public init(descriptor: Int32) {
    self.descriptor = descriptor
  }
}

public enum PacketTunnelSocketKind: String, Codable, CaseIterable, Sendable {
  case udp4, udp6, tcp4, tcp6
}
