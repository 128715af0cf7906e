internal import CKapeDataPlane
internal import KapeCrypto
internal import KapeProtocols

/// Some peers as they are at one moment, copied on the worker's thread as plain memory and read elsewhere. A peer with
/// many prefixes comes in parts: then it is the last of one chunk and the first of the next, which goes on with the
/// prefixes only.
///
/// One thread at a time has it: the worker's while the command runs, the caller's before and after. It holds preshared
/// keys and is wiped.
final class PeerChunk: @unchecked Sendable {
  static let peerCapacity = 64
  static let prefixCapacity = 512

  private let peers = UnsafeMutableBufferPointer<kdp_wireguard_peer_info>.allocate(capacity: peerCapacity)
  private let prefixes = UnsafeMutableBufferPointer<kdp_prefix>.allocate(capacity: prefixCapacity)
  private var prefixCounts = [Int](repeating: 0, count: peerCapacity)
  private(set) var count = 0
  private var cursor: UInt64 = 0
  /// Of the last peer: how many prefixes have been given; it is not complete while that is not nil.
  private var given: UInt32?
  /// Whether the first peer of this chunk was begun by the one before.
  private(set) var continuesPeer = false
  private(set) var isLast = false
  var firstPeer: UInt64? { count > 0 ? peers[0].peer : nil }

  init() {
    peers.initialize(repeating: kdp_wireguard_peer_info())
    prefixes.initialize(repeating: kdp_prefix())
  }

  deinit {
    SecretMemory.wipe(UnsafeMutableRawBufferPointer(peers))
    peers.deallocate()
    prefixes.deallocate()
  }

  /// On the worker's thread: the next peers.
  func fill(from engine: UnsafeMutablePointer<kdp_engine>) {
    var room = PeerChunk.prefixCapacity
    var next = 0
    continuesPeer = given != nil
    if let given {
      peers[0] = peers[count - 1]
      next = 1
      copyPrefixes(of: 0, from: given, &room, engine)
    }
    while next < PeerChunk.peerCapacity, given == nil {
      guard kdp_wireguard_next_peer(engine, &cursor, &peers[next]) else {
        isLast = true
        break
      }
      copyPrefixes(of: next, from: 0, &room, engine)
      next += 1
    }
    count = next
  }

  private func copyPrefixes(
    of index: Int, from first: UInt32, _ room: inout Int, _ engine: UnsafeMutablePointer<kdp_engine>
  ) {
    let start = PeerChunk.prefixCapacity - room
    var copied: UInt32 = 0
    if room > 0, let target = prefixes.baseAddress {
      copied = kdp_wireguard_prefixes(engine, peers[index].peer, first, target + start, UInt32(room))
    }
    prefixCounts[index] = Int(copied)
    room -= Int(copied)
    // Full: there may be more of this peer.
    given = room == 0 && first + copied < peers[index].prefix_count ? first + copied : nil
  }

  /// The peers in order, each with the prefixes that this chunk has of it. When the chunk `continuesPeer`, the first has
  /// been told of before.
  func visit(_ body: (WireGuardPeerStatus) -> Void) {
    var start = 0
    for index in 0..<count {
      let end = start + prefixCounts[index]
      let allowedIPs = prefixes[start..<end].compactMap { IPPrefix(dataPlane: $0) }
      if let peer = WireGuardPeerStatus(dataPlane: peers[index], allowedIPs: allowedIPs) {
        body(peer)
      }
      start = end
    }
  }
}
