import KapeControl
import KapeCrypto
import KapeProtocols

/// A peer that the backend added to an interface, or is about to.
struct StoredPeer: Sendable {
  let server: String
  let key: PublicKey
  let address: UInt32
  let added: Int64
}

/// The peers in the database. A peer is there before it is on the interface, and until after it is off, so that a killed
/// backend leaves none behind that it does not know.
struct PeerStore {
  let database: Database

  enum Refused: Error {
    /// The key is another holder's.
    case taken
    /// The holder has as many as he may, none of which is to make room.
    case atCap
    /// Every address is in use.
    case full
  }

  struct Request {
    let server: WireGuardServer
    let key: PublicKey
    let presharedKey: [UInt8]
    let holders: [String]
    let now: Int64
    let expires: Int64
    let peers: BackendSettings.Peers
  }

  struct Admitted {
    let address: UInt32
    /// It was not there before.
    let isNew: Bool
    /// Who makes room.
    let leaving: StoredPeer?
  }

  /// In one transaction. `lastUse` says, in seconds since 1970, when a peer was last heard of.
  func admit(_ request: Request, after last: UInt32, lastUse: (StoredPeer) -> Int64) throws -> Admitted {
    try database.transaction {
      let key = request.key.withUnsafeBytes { Array($0) }
      let name = request.server.name
      let found = try database.row(
        "SELECT address, holder, earlier_holder FROM peers WHERE server = ? AND public_key = ?", .text(name), .blob(key)
      ) { (address: UInt32(truncatingIfNeeded: $0.integer(0)), holders: [$0.text(1), $0.text(2)]) }
      if let found, !found.holders.contains(where: request.holders.contains) { throw Refused.taken }
      var others = try peers(of: request.holders, at: request.now).filter { $0.server != name || $0.key != request.key }
      var leaving: StoredPeer?
      if others.count >= request.peers.cap {
        guard request.peers.atCap == .replace else { throw Refused.atCap }
        others.sort { lastUse($0) < lastUse($1) }
        leaving = others[0]
        try markLeaving(others[0])
      }
      let address = try found?.address ?? freeAddress(request.server, after: last)
      try database.run(
        """
        INSERT INTO peers (server, public_key, address, preshared_key, holder, earlier_holder, added, expires)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (server, public_key) DO UPDATE SET preshared_key = excluded.preshared_key, holder = excluded.holder,
          earlier_holder = excluded.earlier_holder, added = excluded.added, expires = excluded.expires, leaving = 0
        """, .text(name), .blob(key), .integer(Int64(address)), .blob(request.presharedKey), .text(request.holders[0]),
        .text(request.holders[1]), .integer(request.now), .integer(request.expires))
      return Admitted(address: address, isNew: found == nil, leaving: leaving)
    }
  }

  /// Those of a holder that count. Pseudonyms change: each token and each peer has two of them, one of which is in common.
  private func peers(of holders: [String], at now: Int64) throws -> [StoredPeer] {
    try database.rows(
      """
      SELECT server, public_key, address, added FROM peers
      WHERE leaving = 0 AND expires > ? AND (holder IN (?, ?) OR earlier_holder IN (?, ?))
      """, .integer(now), .text(holders[0]), .text(holders[1]), .text(holders[0]), .text(holders[1]), map: Self.peer)
  }

  private static func peer(_ row: Database.Row) throws -> StoredPeer {
    guard let key = PublicKey(bytes: row.blob(1).span.bytes) else {
      throw DatabaseError(code: 0, reason: "a peer is damaged")
    }
    return StoredPeer(
      server: row.text(0), key: key, address: UInt32(truncatingIfNeeded: row.integer(2)), added: row.integer(3))
  }

  /// An address is not given anew before all others were: packets for whoever had it last may be under way.
  private func freeAddress(_ server: WireGuardServer, after last: UInt32) throws -> UInt32 {
    let used = Set(
      try database.rows("SELECT address FROM peers WHERE server = ?", .text(server.name)) {
        UInt32(truncatingIfNeeded: $0.integer(0))
      })
    guard used.count < server.network.capacity else { throw Refused.full }
    var address = server.network.next(after: last)
    for _ in 0...used.count {
      if !used.contains(address) { return address }
      address = server.network.next(after: address)
    }
    throw Refused.full
  }

  // MARK: Leaving

  func markLeaving(_ peer: StoredPeer) throws {
    try database.run(
      "UPDATE peers SET leaving = 1 WHERE server = ? AND public_key = ?", .text(peer.server), Self.blob(peer.key))
  }

  /// Marks those whose lifetime is over; returns some of those that are to leave a server.
  func leaving(_ server: String, at now: Int64, most: Int) throws -> [StoredPeer] {
    try database.run("UPDATE peers SET leaving = 1 WHERE server = ? AND expires <= ?", .text(server), .integer(now))
    return try database.rows(
      "SELECT server, public_key, address, added FROM peers WHERE server = ? AND leaving = 1 LIMIT ?",
      .text(server), .integer(Int64(most)), map: Self.peer)
  }

  /// They are off the interface. One that came back meanwhile stays.
  func removeLeft(_ peers: [StoredPeer]) throws {
    try database.transaction {
      for peer in peers {
        try database.run(
          "DELETE FROM peers WHERE server = ? AND public_key = ? AND leaving = 1", .text(peer.server),
          Self.blob(peer.key))
      }
    }
  }

  /// It did not get as far as the interface.
  func remove(_ key: PublicKey, from server: String) throws {
    try database.run("DELETE FROM peers WHERE server = ? AND public_key = ?", .text(server), Self.blob(key))
  }

  // MARK: What an interface should have

  func wanted(on server: String, at now: Int64) throws -> [(StoredPeer, presharedKey: [UInt8])] {
    try database.rows(
      """
      SELECT server, public_key, address, added, preshared_key FROM peers
      WHERE server = ? AND leaving = 0 AND expires > ?
      """, .text(server), .integer(now)
    ) { row in (try Self.peer(row), row.blob(4)) }
  }

  private static func blob(_ key: PublicKey) -> SQLValue { .blob(key.withUnsafeBytes { Array($0) }) }
}

extension StoredPeer {
  /// The change that puts it on an interface; nil when the preshared key is damaged.
  func change(presharedKey: [UInt8]) -> ConfigurationProtocolClient.PeerChange? {
    guard let presharedKey = PresharedKey(bytes: presharedKey.span.bytes) else { return nil }
    return .set(key, presharedKey, allowedIPs: [address.prefix])
  }
}

extension UInt32 {
  /// As one IPv4 address.
  var prefix: IPPrefix {
    let address = IPAddress(
      ipv4: UInt8(self >> 24), UInt8(self >> 16 & 255), UInt8(self >> 8 & 255), UInt8(self & 255))
    // 32 bits always fit an IPv4 address.
    guard let prefix = IPPrefix(address, length: 32) else { preconditionFailure("no prefix of 32 bits") }
    return prefix
  }
}
