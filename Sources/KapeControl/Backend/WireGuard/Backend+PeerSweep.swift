import KapeControl
import KapeCrypto
import KapeProtocols

extension Backend {
  /// Holds each interface against the database: takes off whose lifetime is over, puts back whom a restarted interface
  /// has forgotten, and notes who was heard of. Peers that the backend did not add are left alone.
  func sweepPeers() async {
    for server in settings.servers {
      guard let link = links[server.name] else { continue }
      do {
        try await removeLeaving(server.name)
        guard let report = await link.report() else { continue }
        note(report, of: server.name)
        try await putBack(report, server.name, link)
      } catch {
        log.error("sweep_failed", ["server": server.name, "reason": "\(error)"])
      }
    }
  }

  private func note(_ report: InterfaceReport, of server: String) {
    var times: [PublicKey: Int64] = [:]
    for peer in report.peers where peer.latestHandshake > 0 {
      times[peer.publicKey] = Int64(peer.latestHandshake / 1_000_000_000)
    }
    handshakes[server] = times
  }

  /// At most so many in one transaction with the interface. What is next is read anew each time, because in the
  /// meantime a peer may have come, come again or gone.
  private static let chunk = 500

  private func removeLeaving(_ server: String) async throws {
    while true {
      let leaving = try PeerStore(database: database).leaving(server, at: clock.seconds, most: Self.chunk)
      guard !leaving.isEmpty, await remove(leaving, from: server) else { return }
    }
  }

  private func putBack(_ report: InterfaceReport, _ server: String, _ link: InterfaceLink) async throws {
    var present: [PublicKey: [IPPrefix]] = [:]
    for peer in report.peers { present[peer.publicKey] = peer.allowedIPs }
    while true {
      let missing = Array(
        try PeerStore(database: database).wanted(on: server, at: clock.seconds).filter { peer, _ in
          present[peer.key] != [peer.address.prefix]
        }.prefix(Self.chunk))
      let changes = missing.compactMap { $0.0.change(presharedKey: $0.presharedKey) }
      guard !changes.isEmpty else { return }
      for (peer, _) in missing { present[peer.key] = [peer.address.prefix] }
      _ = try await link.apply(changes)
      log.verbose("peers_put_back", ["server": server, "count": "\(changes.count)"])
    }
  }
}
