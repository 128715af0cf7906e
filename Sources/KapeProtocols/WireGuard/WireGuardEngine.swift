internal import CKapeDataPlane
public import KapeCrypto

/// A WireGuard device without sockets: both roles, any number of peers. See `PacketEngine` for how packets go through
/// it.
public struct WireGuardEngine: PacketEngine, ~Copyable {
  public struct Options: Hashable, Sendable {
    /// "openssl", "ipsec-mb" or "avx512"; empty: the best that this machine has.
    public var aeadProvider = ""
    public var insideMTU: UInt16 = 1420
    /// A listen port is configured: never ask for another local port.
    public var hasFixedPort = false
    /// `newestStamp` of the engine before a restart; 0: none. Handshakes stay acceptable to peers even when the wall
    /// clock is behind it.
    public var newestStamp: UInt64 = 0
    public var limits = EngineLimits()

    public init() {}
  }

  public let handle: EngineHandle

  public init(_ options: Options = Options(), now: EngineTime) throws(EngineStatus) {
    var configuration = kdp_wireguard_config()
    configuration.inside_mtu = options.insideMTU
    configuration.fixed_port = options.hasFixedPort
    configuration.newest_stamp = options.newestStamp
    var limits = options.limits.dataPlane
    var host = kdp_host_default()
    var engine: UnsafeMutablePointer<kdp_engine>?
    let status = options.aeadProvider.withCString { provider in
      configuration.aead_provider = provider
      return kdp_wireguard_create(&configuration, &limits, &host, now.dataPlane, &engine)
    }
    try EngineStatus.check(status)
    guard let engine else { throw .noMemory }
    handle = try EngineHandle(engine)
  }

  /// Applies a change whole, or throws and leaves everything as it was. The firewall mark and the number of the port are
  /// the socket owner's; here they only matter as "a port is configured".
  public mutating func apply(
    _ change: WireGuardInterfaceChange, into output: inout EngineOutput, now: EngineTime
  ) throws(EngineStatus) {
    let change = WireGuardDataPlaneChange(change)
    let status = withExtendedLifetime(change) {
      withUnsafePointer(to: change.change) { kdp_wireguard_apply(handle.engine, $0, output.out, now.dataPlane) }
    }
    handle.passEventsOn()
    try EngineStatus.check(status)
  }

  public var privateKey: PrivateKey? {
    withDevice { device in
      device.has_private_key ? withUnsafeBytes(of: &device.private_key) { PrivateKey(bytes: $0.bytes) } : nil
    }
  }

  public var peerCount: Int { withDevice { Int($0.peer_count) } }
  public var isUnderLoad: Bool { withDevice { $0.under_load } }

  /// Newest wall time put into a handshake, to be kept over a restart.
  public var newestStamp: UInt64 { kdp_wireguard_newest_stamp(handle.engine) }

  /// Every peer as it is now, in the order of addition.
  public borrowing func forEachPeer<Failure: Error>(
    _ body: (WireGuardPeerStatus) throws(Failure) -> Void
  ) throws(Failure) {
    var cursor: UInt64 = 0
    var information = kdp_wireguard_peer_info()
    defer { withUnsafeMutableBytes(of: &information) { SecretMemory.wipe($0) } }
    while kdp_wireguard_next_peer(handle.engine, &cursor, &information) {
      if let peer = WireGuardPeerStatus(dataPlane: information, allowedIPs: allowedIPs(information)) { try body(peer) }
    }
  }

  /// nil: there is no such peer.
  public borrowing func peer(_ publicKey: PublicKey) -> WireGuardPeerStatus? {
    var information = kdp_wireguard_peer_info()
    defer { withUnsafeMutableBytes(of: &information) { SecretMemory.wipe($0) } }
    let status = publicKey.withUnsafeBytes {
      kdp_wireguard_find_peer(handle.engine, $0.baseAddress!.assumingMemoryBound(to: UInt8.self), &information)
    }
    guard status == KDP_OK else { return nil }
    return WireGuardPeerStatus(dataPlane: information, allowedIPs: allowedIPs(information))
  }

  private func allowedIPs(_ information: kdp_wireguard_peer_info) -> [IPPrefix] {
    var prefixes = [kdp_prefix](repeating: kdp_prefix(), count: Int(information.prefix_count))
    let count = kdp_wireguard_prefixes(handle.engine, information.peer, 0, &prefixes, UInt32(prefixes.count))
    return prefixes[..<Int(count)].compactMap { IPPrefix(dataPlane: $0) }
  }

  private func withDevice<Result>(_ body: (inout kdp_wireguard_device_info) -> Result) -> Result {
    var device = kdp_wireguard_device_info()
    defer { withUnsafeMutableBytes(of: &device) { SecretMemory.wipe($0) } }
    kdp_wireguard_device(handle.engine, &device)
    return body(&device)
  }
}
