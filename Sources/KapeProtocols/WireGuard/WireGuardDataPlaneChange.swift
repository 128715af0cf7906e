package import CKapeDataPlane
internal import KapeCrypto

/// A change in the form that the engine takes. Its memory is its own, is not changed after `init` and is wiped when it
/// goes: that makes it safe to hand to another thread.
package final class WireGuardDataPlaneChange: @unchecked Sendable {
  package private(set) var change = kdp_wireguard_change()
  private let peers: UnsafeMutableBufferPointer<kdp_wireguard_peer_change>
  private let prefixes: UnsafeMutableBufferPointer<kdp_wireguard_prefix_change>

  /// All of `source`, but for the firewall mark and the number of the port, which are the socket owner's.
  package convenience init(_ source: WireGuardInterfaceChange) {
    self.init(source, withDevice: true, peers: source.peers[...])
  }

  /// These peers of `source`, and what it says of the device itself when `withDevice`: for changes that are applied in
  /// runs.
  package init(_ source: WireGuardInterfaceChange, withDevice: Bool, peers list: ArraySlice<WireGuardPeerChange>) {
    peers = .allocate(capacity: list.count)
    prefixes = .allocate(capacity: list.reduce(0) { $0 + $1.allowedIPs.count })
    peers.initialize(repeating: kdp_wireguard_peer_change())
    prefixes.initialize(repeating: kdp_wireguard_prefix_change())
    if withDevice { setDevice(source) }

    var nextPrefix = 0
    for (index, peer) in list.enumerated() {
      Self.fill(&peers[index], from: peer)
      peers[index].prefix = UnsafePointer(prefixes.baseAddress.map { $0 + nextPrefix })
      for allowedIP in peer.allowedIPs {
        prefixes[nextPrefix] = kdp_wireguard_prefix_change(prefix: allowedIP.prefix.dataPlane, remove: allowedIP.remove)
        nextPrefix += 1
      }
    }
    change.peer = UnsafePointer(peers.baseAddress)
    change.peer_count = UInt32(list.count)
  }

  deinit {
    SecretMemory.wipe(UnsafeMutableRawBufferPointer(peers))
    peers.deallocate()
    prefixes.deallocate()
    withUnsafeMutableBytes(of: &change) { SecretMemory.wipe($0) }
  }

  private func setDevice(_ source: WireGuardInterfaceChange) {
    if let key = source.privateKey {
      change.fields |= KDP_WIREGUARD_SET_PRIVATE_KEY.rawValue
      key.withUnsafeBytes { bytes in withUnsafeMutableBytes(of: &change.private_key) { $0.copyMemory(from: bytes) } }
    }
    if let port = source.listenPort {
      change.fields |= KDP_WIREGUARD_SET_FIXED_PORT.rawValue
      change.fixed_port = port != 0
    }
    if source.replacePeers { change.fields |= KDP_WIREGUARD_REPLACE_PEERS.rawValue }
  }

  private static func fill(_ target: inout kdp_wireguard_peer_change, from peer: WireGuardPeerChange) {
    peer.publicKey.withUnsafeBytes { bytes in
      withUnsafeMutableBytes(of: &target.public_key) { $0.copyMemory(from: bytes) }
    }
    if peer.remove { target.fields |= KDP_WIREGUARD_PEER_REMOVE.rawValue }
    if peer.updateOnly { target.fields |= KDP_WIREGUARD_PEER_UPDATE_ONLY.rawValue }
    if let key = peer.presharedKey {
      target.fields |= KDP_WIREGUARD_PEER_SET_PRESHARED_KEY.rawValue
      key.withUnsafeBytes { bytes in withUnsafeMutableBytes(of: &target.preshared_key) { $0.copyMemory(from: bytes) } }
    }
    if let endpoint = peer.endpoint {
      target.fields |= KDP_WIREGUARD_PEER_SET_ENDPOINT.rawValue
      target.endpoint = endpoint.dataPlane
    }
    if let seconds = peer.persistentKeepalive {
      target.fields |= KDP_WIREGUARD_PEER_SET_KEEPALIVE.rawValue
      target.keepalive_seconds = seconds
    }
    if peer.replaceAllowedIPs { target.fields |= KDP_WIREGUARD_PEER_REPLACE_PREFIXES.rawValue }
    target.prefix_count = UInt32(peer.allowedIPs.count)
  }
}

extension WireGuardPeerStatus {
  /// nil never happens for what the engine gives. The caller wipes `information`.
  package init?(dataPlane information: kdp_wireguard_peer_info, allowedIPs: [IPPrefix]) {
    guard let publicKey = withUnsafeBytes(of: information.public_key, { PublicKey(bytes: $0.bytes) }) else {
      return nil
    }
    self.init(publicKey: publicKey)
    id = information.peer
    if let key = withUnsafeBytes(of: information.preshared_key, { PresharedKey(bytes: $0.bytes) }), !key.isZero {
      presharedKey = key
    }
    endpoint = SocketAddress(dataPlane: information.endpoint)
    persistentKeepalive = information.keepalive_seconds
    lastHandshake = information.handshake_wall
    receivedBytes = information.received_bytes
    sentBytes = information.sent_bytes
    insideReceivedBytes = information.inside_received_bytes
    insideSentBytes = information.inside_sent_bytes
    hasSession = information.has_session
    self.allowedIPs = allowedIPs
  }
}
