import KapeCrypto
import KapeProtocols

/// What a device is after changes, by the plainest rules there are.
struct ReferenceDevice: Equatable {
  struct Peer: Equatable {
    var presharedKey = PresharedKey.zero
    var endpoint: SocketAddress?
    var persistentKeepalive: UInt16 = 0
    var allowedIPs: Set<IPPrefix> = []
  }

  var privateKey = PrivateKey.zero
  var listenPort: UInt16 = 0
  var firewallMark: UInt32 = 0
  var peers: [PublicKey: Peer] = [:]

  mutating func apply(_ change: WireGuardInterfaceChange) {
    if let key = change.privateKey { privateKey = key }
    if let port = change.listenPort { listenPort = port }
    if let mark = change.firewallMark { firewallMark = mark }
    if change.replacePeers { peers = [:] }
    for peerChange in change.peers {
      if peerChange.remove {
        peers[peerChange.publicKey] = nil
        continue
      }
      if peerChange.updateOnly, peers[peerChange.publicKey] == nil { continue }
      var peer = peers[peerChange.publicKey] ?? Peer()
      if let key = peerChange.presharedKey { peer.presharedKey = key }
      if let endpoint = peerChange.endpoint { peer.endpoint = endpoint }
      if let seconds = peerChange.persistentKeepalive { peer.persistentKeepalive = seconds }
      if peerChange.replaceAllowedIPs { peer.allowedIPs = [] }
      for allowedIP in peerChange.allowedIPs {
        if allowedIP.remove {
          peer.allowedIPs.remove(allowedIP.prefix)
        } else {
          for key in peers.keys { peers[key]?.allowedIPs.remove(allowedIP.prefix) }
          peer.allowedIPs.insert(allowedIP.prefix)
        }
      }
      peers[peerChange.publicKey] = peer
    }
  }

  static func after(_ changes: WireGuardInterfaceChange...) -> ReferenceDevice {
    var device = ReferenceDevice()
    for change in changes { device.apply(change) }
    return device
  }
}
