import Foundation
import KapeControl
import KapeCrypto

extension Backend {
  /// The key exchange: whoever has a connection token gets a peer on the server that he asks, for a while.
  func addKey(_ request: HTTPRequest, at server: WireGuardServer) async throws -> HTTPResponse {
    guard let query = request.query, query.repeatedName == nil else {
      throw Refusal(400, .invalidRequest, "the query is not percent-encoded text, or has a name twice")
    }
    guard let token = query["pt"] else { throw Refusal(401, .invalidToken, "pt, the connection token, is missing") }
    let connection = try connection(token)
    try limit(.addKey, connection.holders[0])
    guard let key = query["pubkey"].flatMap({ PublicKey(base64: $0) }), !key.isZero else {
      throw Refusal(400, .invalidRequest, "pubkey must be a public key: 32 bytes as base64, percent-encoded")
    }
    guard let link = links[server.name], await link.publicKey() != nil else { throw Self.noInterface }
    let presharedKey = SecretMemory.randomBytes(32)
    let admitted = try admit(
      PeerStore.Request(
        server: server, key: key, presharedKey: presharedKey, holders: connection.holders, now: clock.seconds,
        expires: clock.seconds + settings.lifetimes.peer, peers: settings.peers))
    let serverKey = try await put(key, presharedKey, admitted, on: server, link)
    return .json([
      "status": "OK", "server_key": .string(serverKey.base64), "server_ip": .string("\(server.ip)"),
      "server_port": .integer(Int64(server.port)), "server_vip": .string(server.network.serverText),
      "peer_ip": .string(TunnelNetwork.text(admitted.address)), "peer_pubkey": .string(key.base64),
      "psk": .string(Data(presharedKey).base64EncodedString()),
      "dns_servers": .strings(server.dnsServers.map { "\($0)" }), "expires_in": .integer(settings.lifetimes.peer),
    ])
  }

  private static let noInterface = Refusal(
    503, .storageUnavailable, "the server's interface does not answer; try another server, or again later")

  private func admit(_ request: PeerStore.Request) throws -> PeerStore.Admitted {
    do {
      let name = request.server.name
      let admitted = try PeerStore(database: database).admit(request, after: lastAddresses[name] ?? 0) { peer in
        max(peer.added, handshakes[peer.server]?[peer.key] ?? 0)
      }
      if admitted.isNew { lastAddresses[name] = admitted.address }
      return admitted
    } catch let refused as PeerStore.Refused {
      switch refused {
      case .taken: throw Refusal(409, .invalidRequest, "the key is the peer of somebody else: make a new one")
      case .atCap:
        throw Refusal(403, .notEntitled, "there are \(request.peers.cap) peers already: wait until one expires")
      case .full: throw Refusal(503, .storageUnavailable, "the server's addresses are all in use; try another server")
      }
    }
  }

  /// Puts the peer on the interface, and takes whoever makes room off his. Returns the server's key.
  private func put(
    _ key: PublicKey, _ presharedKey: [UInt8], _ admitted: PeerStore.Admitted, on server: WireGuardServer,
    _ link: InterfaceLink
  ) async throws -> PublicKey {
    let peer = StoredPeer(server: server.name, key: key, address: admitted.address, added: 0)
    guard let change = peer.change(presharedKey: presharedKey) else { throw Self.noInterface }
    let serverKey: PublicKey
    do {
      serverKey = try await link.apply([change])
    } catch {
      log.error("peer_not_added", ["server": server.name, "reason": "\(error)"])
      if admitted.isNew { try PeerStore(database: database).remove(key, from: server.name) }
      throw Self.noInterface
    }
    if let leaving = admitted.leaving { await remove([leaving], from: leaving.server) }
    return serverKey
  }

  /// Takes peers off an interface. What does not work (then it is false) is done by the next sweep.
  @discardableResult
  func remove(_ peers: [StoredPeer], from server: String) async -> Bool {
    guard let link = links[server] else { return false }
    do {
      _ = try await link.apply(peers.map { .remove($0.key) })
      try PeerStore(database: database).removeLeft(peers)
      return true
    } catch {
      log.error("peers_not_removed", ["server": server, "reason": "\(error)"])
      return false
    }
  }
}
