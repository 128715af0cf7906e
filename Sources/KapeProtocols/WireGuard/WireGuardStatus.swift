public import KapeCrypto

/// An interface as it is now.
public struct WireGuardInterfaceStatus: Equatable, Sendable {
  /// nil: none is set.
  public var privateKey: PrivateKey?
  public var listenPort: UInt16
  /// 0: none.
  public var firewallMark: UInt32

  public init(privateKey: PrivateKey? = nil, listenPort: UInt16 = 0, firewallMark: UInt32 = 0) {
    self.privateKey = privateKey
    self.listenPort = listenPort
    self.firewallMark = firewallMark
  }
}

/// A peer as it is now.
public struct WireGuardPeerStatus: Equatable, Sendable {
  /// The engine's number of it, as in events; never used twice.
  public var id: UInt64 = 0
  public var publicKey: PublicKey
  /// nil: none.
  public var presharedKey: PresharedKey?
  /// nil: not known.
  public var endpoint: SocketAddress?
  /// Seconds; 0: off.
  public var persistentKeepalive: UInt16 = 0
  /// Wall time of the newest completed handshake, ns since 1970; 0: never.
  public var lastHandshake: UInt64 = 0
  /// Bytes of WireGuard messages, as the kernel counts them.
  public var receivedBytes: UInt64 = 0
  public var sentBytes: UInt64 = 0
  /// Bytes of the packets inside.
  public var insideReceivedBytes: UInt64 = 0
  public var insideSentBytes: UInt64 = 0
  public var hasSession = false
  public var allowedIPs: [IPPrefix] = []

  public init(publicKey: PublicKey) {
    self.publicKey = publicKey
  }
}
