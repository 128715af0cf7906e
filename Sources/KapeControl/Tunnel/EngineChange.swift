internal import CKapeDataPlane
internal import KapeCrypto
internal import KapeProtocols

/// A change, or a run of its peers, in the form that the engine takes. Made before it goes to the worker's thread, read
/// there only, wiped when it goes: that makes it safe to hand over.
final class EngineChange: @unchecked Sendable {
  private(set) var change = kdp_wireguard_change()
  private let peers: UnsafeMutableBufferPointer<kdp_wireguard_peer_change>
  private let prefixes: UnsafeMutableBufferPointer<kdp_wireguard_prefix_change>

  /// What `source` says of the device itself when `withDevice`; and of these peers.
  init(_ source: WireGuardInterfaceChange, withDevice: Bool, peers list: ArraySlice<WireGuardPeerChange>) {
    peers = .allocate(capacity: list.count)
    prefixes = .allocate(capacity: list.reduce(0) { $0 + $1.allowedIPs.count })
    peers.initialize(repeating: kdp_wireguard_peer_change())
    prefixes.initialize(repeating: kdp_wireguard_prefix_change())

    var fields: UInt32 = 0
    if withDevice {
      if let key = source.privateKey {
        fields |= KDP_WIREGUARD_SET_PRIVATE_KEY.rawValue
        key.withUnsafeBytes { bytes in withUnsafeMutableBytes(of: &change.private_key) { $0.copyMemory(from: bytes) } }
      }
      if let port = source.listenPort {
        fields |= KDP_WIREGUARD_SET_FIXED_PORT.rawValue
        change.fixed_port = port != 0
      }
      if source.replacePeers { fields |= KDP_WIREGUARD_REPLACE_PEERS.rawValue }
    }
    change.fields = fields

    var nextPrefix = 0
    for (index, peer) in list.enumerated() {
      peers[index] = kdp_wireguard_peer_change(peer)
      peers[index].prefix = UnsafePointer(prefixes.baseAddress.map { $0 + nextPrefix })
      for allowed in peer.allowedIPs {
        prefixes[nextPrefix] = kdp_wireguard_prefix_change(prefix: kdp_prefix(allowed.prefix), remove: allowed.remove)
        nextPrefix += 1
      }
    }
    change.peer = UnsafePointer(peers.baseAddress)
    change.peer_count = UInt32(list.count)
  }

  deinit {
    wipe(UnsafeMutableRawBufferPointer(peers))
    peers.deallocate()
    prefixes.deallocate()
    withUnsafeMutableBytes(of: &change) { wipe($0) }
  }
}

extension kdp_wireguard_peer_change {
  fileprivate init(_ peer: WireGuardPeerChange) {
    self.init()
    var fields: UInt32 = 0
    peer.publicKey.withUnsafeBytes { bytes in withUnsafeMutableBytes(of: &public_key) { $0.copyMemory(from: bytes) } }
    if peer.remove { fields |= KDP_WIREGUARD_PEER_REMOVE.rawValue }
    if peer.updateOnly { fields |= KDP_WIREGUARD_PEER_UPDATE_ONLY.rawValue }
    if let key = peer.presharedKey {
      fields |= KDP_WIREGUARD_PEER_SET_PRESHARED_KEY.rawValue
      key.withUnsafeBytes { bytes in withUnsafeMutableBytes(of: &preshared_key) { $0.copyMemory(from: bytes) } }
    }
    if let address = peer.endpoint {
      fields |= KDP_WIREGUARD_PEER_SET_ENDPOINT.rawValue
      endpoint = kdp_address(address)
    }
    if let seconds = peer.persistentKeepalive {
      fields |= KDP_WIREGUARD_PEER_SET_KEEPALIVE.rawValue
      keepalive_seconds = seconds
    }
    if peer.replaceAllowedIPs { fields |= KDP_WIREGUARD_PEER_REPLACE_PREFIXES.rawValue }
    self.fields = fields
    prefix_count = UInt32(peer.allowedIPs.count)
  }
}

extension kdp_prefix {
  init(_ prefix: IPPrefix) {
    self.init()
    family = prefix.address.family.rawValue
    length = UInt8(prefix.length)
    prefix.address.withUnsafeBytes { source in
      withUnsafeMutableBytes(of: &bytes) { $0.copyBytes(from: source) }
    }
  }
}

extension kdp_address {
  init(_ address: SocketAddress) {
    self.init()
    family = address.address.family.rawValue
    port = address.port
    scope = address.scope
    address.address.withUnsafeBytes { source in
      withUnsafeMutableBytes(of: &bytes) { $0.copyBytes(from: source) }
    }
  }
}

extension IPAddress {
  /// nil for a family that is neither.
  init?(family: UInt8, bytes: UnsafeRawBufferPointer) {
    switch family {
    case Family.ipv4.rawValue: self.init(bytes: UnsafeRawBufferPointer(rebasing: bytes[..<4]).bytes)
    case Family.ipv6.rawValue: self.init(bytes: UnsafeRawBufferPointer(rebasing: bytes[..<16]).bytes)
    default: return nil
    }
  }
}

extension SocketAddress {
  init?(_ address: kdp_address) {
    guard let ip = withUnsafeBytes(of: address.bytes, { IPAddress(family: address.family, bytes: $0) }) else {
      return nil
    }
    self.init(ip, port: address.port, scope: address.scope)
  }
}

extension IPPrefix {
  init?(_ prefix: kdp_prefix) {
    guard let ip = withUnsafeBytes(of: prefix.bytes, { IPAddress(family: prefix.family, bytes: $0) }) else {
      return nil
    }
    self.init(ip, length: Int(prefix.length))
  }
}
