import KapeCrypto
import KapeTestSupport
import Testing

@testable import KapeProtocols

private func key(_ bytes: [UInt8]) -> PublicKey? { PublicKey(bytes: bytes.span.bytes) }

private let second: UInt64 = 1_000_000_000

@Suite struct WireGuardEngineTests {
  private static func configuration(
    _ own: String, peer: String, prefix: String, endpoint: String? = nil, keepalive: Int = 0
  ) throws -> WireGuardConfiguration {
    try WireGuardConfiguration.parse(
      """
      [Interface]
      PrivateKey = \(own)
      [Peer]
      PublicKey = \(peer)
      PresharedKey = \(TestKeys.shared)
      AllowedIPs = \(prefix)
      \(endpoint.map { "Endpoint = \($0)" } ?? "")
      PersistentKeepalive = \(keepalive)
      """
    ).get()
  }

  /// a knows where b is, b does not know where a is.
  private static func pair(
    _ pool: borrowing PacketPool, _ body: (inout EngineNode, inout EngineNode) throws -> Void
  ) throws {
    var a = try EngineNode(1, pool: pool)
    var b = try EngineNode(2, pool: pool)
    try a.engine.apply(
      configuration(TestKeys.aPrivate, peer: TestKeys.bPublic, prefix: "10.0.0.2/32", endpoint: "\(b.address)")
        .change(),
      into: &a.output, now: EngineNode.start)
    try b.engine.apply(
      configuration(TestKeys.bPrivate, peer: TestKeys.aPublic, prefix: "10.0.0.1/32").change(),
      into: &b.output, now: EngineNode.start)
    try body(&a, &b)
  }

  @Test func twoEnginesTalkToEachOther() async throws {
    let pool = try PacketPool()
    var events: [EngineEvents] = []
    try Self.pair(pool) { a, b in
      events = [a.engine.events, b.engine.events]
      let request = ipPacket(from: "10.0.0.1", to: "10.0.0.2", size: 100)
      let answer = ipPacket(from: "10.0.0.2", to: "10.0.0.1", size: 1400)
      a.send(request, now: EngineNode.start)
      // initiation, response, the packet that waited
      var datagrams = 0
      datagrams = EngineNode.exchange(&a, &b, now: EngineNode.start)
      #expect(datagrams == 3)
      #expect(b.delivered == [request])
      b.send(answer, now: EngineNode.start)
      datagrams = EngineNode.exchange(&a, &b, now: EngineNode.start)
      #expect(datagrams == 1)
      #expect(a.delivered == [answer])

      let statistics = a.engine.statistics
      #expect(statistics.handshakes == 1)
      #expect(statistics.insideIn.packets == 1)
      #expect(statistics.insideIn.bytes == 100)
      #expect(statistics.insideOut.bytes == 1400)
      #expect(statistics.wireOut.bytes == 148 + 112 + 32)
      #expect(statistics.statuses[.ok] ?? 0 > 0)

      let aKey = try #require(PublicKey(base64: TestKeys.aPublic))
      let found = b.engine.peer(aKey)
      let peer = try #require(found)
      #expect(peer.hasSession)
      #expect(peer.endpoint == a.address)
      #expect(peer.presharedKey == PresharedKey(base64: TestKeys.shared))
      #expect(peer.allowedIPs.map(\.description) == ["10.0.0.1/32"])
      #expect(peer.insideReceivedBytes == 100)
      #expect(peer.insideSentBytes == 1400)
      #expect(peer.lastHandshake == EngineNode.start.wall)
      #expect(a.engine.name == "wireguard")
      #expect(a.engine.peerCount == 1)
      #expect(a.engine.privateKey == PrivateKey(base64: TestKeys.aPrivate))
      #expect(a.engine.newestStamp >= EngineNode.start.wall / second * second)
    }
    // The engines are gone, so the streams end.
    var kinds: [[EngineEvent.Kind]] = []
    for stream in events {
      var list: [EngineEvent.Kind] = []
      for await event in stream {
        #expect(event.peer != 0)
        #expect(event.boot == EngineNode.start.boot)
        list.append(event.kind)
      }
      kinds.append(list)
    }
    #expect(kinds[0] == [.handshakeStarted(attempt: 1), .connected])
    #expect(kinds[1].contains(.connected))
    #expect(kinds[1].contains(.endpointChanged(SocketAddress(IPAddress(ipv4: 192, 0, 2, 1), port: 51820))))
    #expect(pool.freeSlotCount >= pool.slotCount - 1)
  }

  @Test func withoutAnAnswerItTriesAgainAtItsDeadline() throws {
    let pool = try PacketPool()
    try Self.pair(pool) { a, _ in
      a.send(ipPacket(from: "10.0.0.1", to: "10.0.0.2", size: 40), now: EngineNode.start)
      #expect(a.output.wireCount == 1)
      a.output.removeAll()
      let next = a.engine.deadline
      let deadline = try #require(next)
      #expect(deadline > EngineNode.start.boot)
      #expect(deadline <= EngineNode.start.boot + 6 * second)
      a.engine.tick(into: &a.output, now: EngineNode.start.advanced(by: deadline - EngineNode.start.boot))
      #expect(a.output.wireCount == 1)
      a.output.forEachWirePacket { bytes, attributes in
        #expect(bytes.byteCount == 148)
        #expect(attributes.path?.remote.description == "192.0.2.2:51820")
      }
      var kinds: [EngineEvent.Kind] = []
      while let event = a.engine.nextEvent() { kinds.append(event.kind) }
      #expect(kinds == [.handshakeStarted(attempt: 1), .handshakeStarted(attempt: 2)])
    }
  }

  @Test func aFullOutputLeavesTheRestInTheBatch() throws {
    let pool = try PacketPool()
    try Self.pair(pool) { a, b in
      let now = EngineNode.start
      var consumed = 0
      a.send(ipPacket(from: "10.0.0.1", to: "10.0.0.2", size: 20), now: now)
      _ = EngineNode.exchange(&a, &b, now: now)
      b.delivered = []
      for _ in 0..<PacketBatch.maximumCapacity {
        let packet = ipPacket(from: "10.0.0.1", to: "10.0.0.2", size: 60)
        let fits = a.outgoing.append(copying: packet.span.bytes, room: a.engine.room)
        #expect(fits)
      }
      let packet = ipPacket(from: "10.0.0.1", to: "10.0.0.2", size: 61)
      let fits = a.outgoing.append(copying: packet.span.bytes, room: a.engine.room)
      #expect(!fits)
      consumed = a.engine.inside(&a.outgoing, into: &a.output, now: now)
      #expect(consumed == PacketBatch.maximumCapacity)
      a.outgoing.append(copying: packet.span.bytes, room: a.engine.room)
      consumed = a.engine.inside(&a.outgoing, into: &a.output, now: now)
      #expect(consumed == 0)
      #expect(a.outgoing.count == 1)
      _ = EngineNode.exchange(&a, &b, now: now)
      consumed = a.engine.inside(&a.outgoing, into: &a.output, now: now)
      #expect(consumed == 1)
      _ = EngineNode.exchange(&a, &b, now: now)
      #expect(b.delivered.count == PacketBatch.maximumCapacity + 1)
      #expect(b.delivered.last == packet)
    }
  }

  @Test func aChangedByteIsCountedAndDeliveredToNobody() throws {
    let pool = try PacketPool()
    try Self.pair(pool) { a, b in
      let now = EngineNode.start
      var consumed = 0
      a.send(ipPacket(from: "10.0.0.1", to: "10.0.0.2", size: 20), now: now)
      _ = EngineNode.exchange(&a, &b, now: now)
      b.delivered = []
      a.send(ipPacket(from: "10.0.0.1", to: "10.0.0.2", size: 200), now: now)
      let path = PacketPath(remote: a.address)
      a.output.moveWire(to: &b.incoming) { _ in PacketAttributes(path: path) }
      b.incoming.withMutablePacket(0) { bytes in
        let byte = bytes.unsafeLoad(fromByteOffset: 40, as: UInt8.self)
        bytes.storeBytes(of: byte ^ 1, toByteOffset: 40, as: UInt8.self)
      }
      consumed = b.engine.outside(&b.incoming, into: &b.output, now: now)
      #expect(consumed == 1)
      b.takeDelivered()
      #expect(b.delivered == [])
      #expect(b.engine.statistics.statuses[.authenticationFailed] == 1)
    }
  }

  @Test func aRefusedChangeLeavesTheDeviceAsItWas() throws {
    let pool = try PacketPool()
    try Self.pair(pool) { a, _ in
      var change = WireGuardInterfaceChange()
      change.privateKey = PrivateKey(base64: TestKeys.bPrivate)
      change.replacePeers = true
      let zero = [UInt8](repeating: 0, count: 32)
      change.peers = [WireGuardPeerChange(publicKey: try #require(key(zero)))]
      var thrown: EngineStatus?
      do throws(EngineStatus) {
        try a.engine.apply(change, into: &a.output, now: EngineNode.start)
      } catch {
        thrown = error
      }
      #expect(thrown == .lowOrderKey)
      #expect(a.engine.privateKey == PrivateKey(base64: TestKeys.aPrivate))
      #expect(a.engine.peerCount == 1)
    }
  }

  @Test func whatCannotBeMade() throws {
    var options = WireGuardEngine.Options()
    options.aeadProvider = "no such provider"
    #expect(throws: EngineStatus.unsupported) { _ = try WireGuardEngine(options, now: EngineNode.start) }
    #expect(throws: EngineStatus.invalidArgument) { _ = try PacketPool(slots: 0) }
    #expect(throws: EngineStatus.invalidArgument) { _ = try PacketPool(slots: -1) }
  }

  /// Random changes, one after the other: the device is what the plainest rules say.
  @Test func changesAreAppliedAsTheReferenceDoes() throws {
    var generator = SeededGenerator(seed: 3)
    let pool = try PacketPool()
    let keys = try (1...5).map { number in
      let bytes = [UInt8](repeating: UInt8(number), count: 32)
      return try #require(key(bytes))
    }
    for round in 0..<30 {
      var node = try EngineNode(1, pool: pool)
      var reference = ReferenceDevice()
      for step in 0..<20 {
        var change = WireGuardInterfaceChange()
        change.replacePeers = generator.chance(8)
        for _ in 0..<generator.below(4) {
          var peer = WireGuardPeerChange(publicKey: keys[generator.below(keys.count)])
          peer.remove = generator.chance(6)
          peer.updateOnly = generator.chance(4)
          peer.replaceAllowedIPs = generator.chance(3)
          if generator.chance(2) { peer.presharedKey = generator.chance(3) ? .zero : PresharedKey() }
          if generator.chance(2) { peer.persistentKeepalive = UInt16(generator.below(100)) }
          if generator.chance(2) {
            peer.endpoint = SocketAddress(IPAddress(ipv4: 192, 0, 2, UInt8(generator.below(9))), port: 1)
          }
          for _ in 0..<generator.below(4) {
            let text = generator.chance(2) ? "10.\(generator.below(4)).0.0/16" : "fd00:\(generator.below(4))::/64"
            peer.allowedIPs.append(.init(try #require(IPPrefix(text)), remove: generator.chance(4)))
          }
          change.peers.append(peer)
        }
        try node.engine.apply(change, into: &node.output, now: EngineNode.start)
        node.output.removeAll()
        // A peer that stays through a replacement keeps where it is.
        let before = reference.peers.mapValues(\.endpoint)
        reference.apply(change)
        if change.replacePeers {
          for key in reference.peers.keys where reference.peers[key]?.endpoint == nil {
            reference.peers[key]?.endpoint = before[key] ?? nil
          }
        }
        var found: [PublicKey: ReferenceDevice.Peer] = [:]
        node.engine.forEachPeer { peer in
          found[peer.publicKey] = ReferenceDevice.Peer(
            presharedKey: peer.presharedKey ?? .zero, endpoint: peer.endpoint,
            persistentKeepalive: peer.persistentKeepalive, allowedIPs: Set(peer.allowedIPs))
        }
        #expect(found == reference.peers, "round \(round) step \(step): \(change)")
      }
    }
  }

  @Test func packetsAndOutputsKeepTheirPoolAlive() throws {
    var batch: PacketBatch
    do {
      let pool = try PacketPool(slots: 1)
      batch = PacketBatch(pool: pool)
    }
    let bytes: [UInt8] = [1, 2, 3]
    let fits = batch.append(copying: bytes.span.bytes)
    #expect(fits)
    batch.withPacket(0) { content, attributes in
      #expect(content.withUnsafeBytes { Array($0) } == bytes)
      #expect(attributes == PacketAttributes())
    }
    batch.removeAll()
    #expect(batch.count == 0)
  }

  @Test func eventsThatNobodyReadsAreCountedAndDoNotPileUp() async throws {
    let pool = try PacketPool()
    var node = try EngineNode(1, pool: pool)
    let events = node.engine.events
    let first = try #require(PublicKey(base64: TestKeys.bPublic))
    let second = try #require(PublicKey(base64: TestKeys.cPublic))
    let prefix = try #require(IPPrefix("10.0.0.0/8"))
    let moves = EngineEvents.bufferSize + 50
    for move in 0...moves {
      var change = WireGuardInterfaceChange()
      change.peers = [WireGuardPeerChange(publicKey: move % 2 == 0 ? first : second)]
      change.peers[0].allowedIPs = [.init(prefix)]
      try node.engine.apply(change, into: &node.output, now: EngineNode.start)
    }
    _ = consume node
    var found = 0
    var lost = 0
    for await event in events {
      guard case .prefixMoved(prefix, from: let other) = event.kind else { continue }
      #expect(other != 0 && other != event.peer)
      found += 1
      lost += event.lost
    }
    #expect(found == EngineEvents.bufferSize)
    #expect(found + lost >= moves - 1)
  }

  @Test func theSmallerCalls() throws {
    let pool = try PacketPool()
    try Self.pair(pool) { a, b in
      let now = EngineNode.start
      a.engine.setInsideMTU(1280)
      #expect(a.engine.room.insideMTU == 1280)
      #expect(a.engine.room.head >= 16)
      a.send(ipPacket(from: "10.0.0.1", to: "10.0.0.2", size: 20), now: now)
      _ = EngineNode.exchange(&a, &b, now: now)
      a.engine.endRound(now: now)
      a.engine.networkChanged(into: &a.output, now: now.advanced(by: 30 * second))
      #expect(a.output.wireCount > 0)
      #expect(a.engine.isUnderLoad == false)
      // A packet that must not be fragmented and does not fit the path: told to the inside, not sent.
      a.output.removeAll()
      a.engine.setPathMTU(700, of: PacketPath(remote: b.address), now: now)
      var packet = ipPacket(from: "10.0.0.1", to: "10.0.0.2", size: 1200)
      packet[6] = 0x40
      packet[10] = UInt8(((UInt16(packet[10]) << 8 | UInt16(packet[11])) &- 0x4000) >> 8)
      a.send(packet, now: now.advanced(by: 30 * second))
      a.takeDelivered()
      #expect(a.output.wireCount == 0)
      #expect(a.engine.statistics.statuses[.tooBig] == 1)
      let answer = try #require(a.delivered.last)
      #expect(answer[9] == 1)
      #expect(Array(answer[20..<22]) == [3, 4])
    }
  }

  /// A source address learnt on a link is not used once the link is gone; the session goes on.
  @Test func aLinkThatGoesTakesItsLocalAddressesAlong() throws {
    let pool = try PacketPool()
    try Self.pair(pool) { a, b in
      let now = EngineNode.start
      let local = SocketAddress(IPAddress(ipv4: 192, 0, 2, 77), port: 0)
      a.send(ipPacket(from: "10.0.0.1", to: "10.0.0.2", size: 20), now: now)
      let path = PacketPath(link: 3, remote: a.address, local: local, interfaceIndex: 5)
      for _ in 0..<2 {
        a.output.moveWire(to: &b.incoming) { _ in PacketAttributes(path: path) }
        b.engine.outside(&b.incoming, into: &b.output, now: now)
        _ = b.passWire(to: &a, now: now)
      }
      func paths(_ node: inout EngineNode) -> [PacketPath?] {
        var result: [PacketPath?] = []
        node.send(ipPacket(from: "10.0.0.2", to: "10.0.0.1", size: 20), now: now)
        node.output.forEachWirePacket { _, attributes in result.append(attributes.path) }
        node.output.removeAll()
        return result
      }
      let before = paths(&b)
      #expect(before == [path])
      b.engine.linkDown(3, into: &b.output, now: now)
      b.engine.linkUp(4, isStream: false, path: path, into: &b.output, now: now)
      b.engine.linkRoom(4, bytes: 1000, into: &b.output, now: now)
      let after = paths(&b)
      #expect(after.count == 1)
      #expect(after.first??.remote == a.address)
      #expect(after.first??.local == nil)
      #expect(after.first??.interfaceIndex == 0)
    }
  }

  @Test func aPeerConfiguredBeforeThePrivateKeyExists() throws {
    let pool = try PacketPool()
    var node = try EngineNode(1, pool: pool)
    let now = EngineNode.start
    let publicKey = try #require(PublicKey(base64: TestKeys.bPublic))
    var change = WireGuardInterfaceChange()
    change.peers = [WireGuardPeerChange(publicKey: publicKey)]
    change.peers[0].endpoint = SocketAddress(IPAddress(ipv4: 192, 0, 2, 10), port: 51820)
    change.peers[0].allowedIPs = [.init(try #require(IPPrefix("10.77.0.0/16")))]
    try node.engine.apply(change, into: &node.output, now: now)
    let peer = node.engine.peer(publicKey)
    #expect(peer?.endpoint?.description == "192.0.2.10:51820")
    #expect(peer?.hasSession == false)

    let packet = ipPacket(from: "10.77.0.1", to: "10.77.0.9", size: 40)
    node.send(packet, now: now)
    #expect(node.output.wireCount == 0)
    #expect(node.engine.statistics.statuses[.noKey] ?? 0 > 0)
    node.output.removeAll()

    var key = WireGuardInterfaceChange()
    key.privateKey = PrivateKey(base64: TestKeys.aPrivate)
    try node.engine.apply(key, into: &node.output, now: now)
    node.send(packet, now: now)
    #expect(node.output.wireCount == 1)
    node.output.forEachWirePacket { bytes, _ in #expect(bytes.byteCount == 148) }
    #expect(node.engine.statistics.handshakeTries == 1)
  }
}
