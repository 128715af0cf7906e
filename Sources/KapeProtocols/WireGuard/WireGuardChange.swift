public import KapeCrypto

/// What to change of an interface: the same fields as the configuration protocol's `set` and the engine's change.
/// Changes apply in order; nil and empty leave things as they are.
public struct WireGuardInterfaceChange: Equatable, Sendable {
  /// All zero: takes the key away.
  public var privateKey: PrivateKey?
  /// 0: any.
  public var listenPort: UInt16?
  /// 0: none.
  public var firewallMark: UInt32?
  /// Removes every peer that is not in `peers`.
  public var replacePeers = false
  /// In order; the same peer may come more than once.
  public var peers: [WireGuardPeerChange] = []

  public init() {}
}

public struct WireGuardPeerChange: Equatable, Sendable {
  public var publicKey: PublicKey
  public var remove = false
  /// Does nothing when there is no such peer.
  public var updateOnly = false
  /// All zero: none.
  public var presharedKey: PresharedKey?
  public var endpoint: SocketAddress?
  /// Seconds; 0: off.
  public var persistentKeepalive: UInt16?
  /// Takes away all prefixes before those of `allowedIPs` are added.
  public var replaceAllowedIPs = false
  public var allowedIPs: [WireGuardAllowedIPChange] = []

  public init(publicKey: PublicKey) {
    self.publicKey = publicKey
  }
}

/// A prefix that is given to a peer (and taken from whoever has it), or taken from that peer.
public struct WireGuardAllowedIPChange: Hashable, Sendable {
  public var prefix: IPPrefix
  public var remove: Bool

  public init(_ prefix: IPPrefix, remove: Bool = false) {
    self.prefix = prefix
    self.remove = remove
  }
}

extension WireGuardConfiguration {
  /// What `wg setconf` would do with this file: everything that it does not name is reset, peers included.
  /// `address` gives the socket address of an endpoint; where it gives none, the peer waits to be found.
  public func change(
    address: (WireGuardEndpoint) -> SocketAddress? = { $0.socketAddress() }
  ) -> WireGuardInterfaceChange {
    var change = WireGuardInterfaceChange()
    change.privateKey = interface.privateKey ?? .zero
    change.listenPort = interface.listenPort
    change.firewallMark = interface.firewallMark
    change.replacePeers = true
    change.peers = peers.map { peer in
      var result = WireGuardPeerChange(publicKey: peer.publicKey)
      result.presharedKey = peer.presharedKey ?? .zero
      result.endpoint = peer.endpoint.flatMap(address)
      result.persistentKeepalive = peer.persistentKeepalive
      result.replaceAllowedIPs = true
      result.allowedIPs = peer.allowedIPs.map { WireGuardAllowedIPChange($0) }
      return result
    }
    return change
  }
}
