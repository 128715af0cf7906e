package import KapeCrypto
package import KapeProtocols

/// A WireGuard connection in the engine's terms, from a configuration with keys.
package struct WireGuardSetup: Sendable {
  /// So that a handshake begins without traffic, and a NAT on the way keeps its mapping.
  static let persistentKeepalive: UInt16 = 15
  private static let leastMTU = 576

  package var change: WireGuardInterfaceChange
  package var serverKey: PublicKey
  package var endpoint: SocketAddress
  package var settings: PacketTunnelInterfaceSettings
  package var mtu: Int

  /// Throws a `PacketTunnelError` that names what cannot be used.
  package init(_ configuration: KapeWireGuardConfig) throws {
    guard configuration.obfuscation == .none else {
      throw PacketTunnelError.unsupportedConfiguration(
        "WireGuard's obfuscation \(configuration.obfuscationDescription)")
    }
    guard configuration.mtu >= Self.leastMTU else {
      throw PacketTunnelError.unsupportedConfiguration("an MTU of \(configuration.mtu), below \(Self.leastMTU)")
    }
    guard let address = IPAddress(configuration.host), configuration.port != 0 else {
      throw PacketTunnelError.configurationFailed("WireGuard's host is not an IP address with a port")
    }
    let exchanged = configuration.endpointConfiguration
    mtu = Int(configuration.mtu)
    endpoint = SocketAddress(address, port: configuration.port)
    serverKey = try Self.key(exchanged.serverPublicKey, "the server's key") { PublicKey(base64: $0) }
    let privateKey = try Self.key(exchanged.clientPrivateKey, "the client's key") { PrivateKey(base64: $0) }
    let addresses = try Self.addresses(exchanged.internalIp ?? "")
    let resolvers = try Self.resolvers(exchanged, addresses)

    var peer = WireGuardPeerChange(publicKey: serverKey)
    if let text = exchanged.presharedKey, !text.isEmpty {
      peer.presharedKey = try Self.key(text, "the preshared key") { PresharedKey(base64: $0) }
    }
    peer.endpoint = endpoint
    peer.persistentKeepalive = Self.persistentKeepalive
    peer.replaceAllowedIPs = true
    peer.allowedIPs = ["0.0.0.0/0", "::/0"].compactMap { IPPrefix($0) }.map { WireGuardAllowedIPChange($0) }
    change = WireGuardInterfaceChange()
    change.privateKey = privateKey
    change.replacePeers = true
    change.peers = [peer]

    settings = PacketTunnelInterfaceSettings(
      remoteAddress: IpAddress(configuration.host),
      addresses: addresses.map { .init(IpAddress($0.address.description), length: $0.prefixLength) },
      includedRoutes: PacketTunnelInterfaceSettings.everything, dnsServers: resolvers, gateway: exchanged.gateway,
      mtu: mtu)
  }

  /// The authenticator gave it: its fault.
  private static func key<Key>(_ text: String?, _ name: String, _ read: (String) -> Key?) throws -> Key {
    guard let key = read(text ?? "") else {
      throw PacketTunnelError.authenticationFailed("\(name) is not a key of WireGuard's (32 bytes in base64)")
    }
    return key
  }

  /// One address, or several with commas between them.
  private static func addresses(_ text: String) throws -> [InterfaceAddress] {
    let addresses = text.split(separator: ",").map { InterfaceAddress($0.filter { !$0.isWhitespace }) }
    guard !addresses.isEmpty, let whole = addresses as? [InterfaceAddress] else {
      throw PacketTunnelError.authenticationFailed("the address inside the tunnel is not an IP address")
    }
    return whole
  }

  /// Those that are listed; else the first address of the server's network as it is known to be cut.
  private static func resolvers(
    _ exchanged: WireguardEndpointConfiguration, _ addresses: [InterfaceAddress]
  ) throws -> [IpAddress] {
    if !exchanged.dnsServers.isEmpty { return exchanged.dnsServers }
    for address in addresses where address.address.family == .ipv4 {
      let octets = address.address.description.split(separator: ".")
      return [.v4(ipV4: "\(octets[0]).\(octets[1]).0.1")]
    }
    throw PacketTunnelError.tunnelSetupFailed("there is no resolver, and none can be derived from the address inside")
  }
}
