import KapeCrypto
import KapeTestSupport
import Testing

@testable import KapeProtocols

private let keyHex = "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20"
private let zeroHex = String(repeating: "0", count: 64)

private func requests(_ text: String, pieces: Int? = nil) -> [WireGuardUAPIRequest] {
  let bytes = Array(text.utf8)
  var reader = WireGuardUAPIReader { $0 == "lo" ? 1 : nil }
  var result: [WireGuardUAPIRequest] = []
  var start = 0
  while start < bytes.count {
    let end = min(start + (pieces ?? bytes.count), bytes.count)
    let piece = Array(bytes[start..<end])
    reader.append(piece.span.bytes)
    while let request = reader.next() { result.append(request) }
    start = end
  }
  return result
}

private func peerChange(_ lines: String) -> WireGuardPeerChange? {
  guard case .set(let change)? = requests("set=1\npublic_key=\(keyHex)\n\(lines)\n\n").first else { return nil }
  return change.peers.first
}

@Suite struct WireGuardUAPITests {
  @Test func aWholeTransaction() throws {
    var expected = WireGuardInterfaceChange()
    expected.privateKey = PrivateKey.zero
    expected.listenPort = 51820
    expected.firewallMark = 4_294_967_295
    expected.replacePeers = true
    var first = WireGuardPeerChange(publicKey: try #require(PublicKey(hex: keyHex)))
    first.remove = true
    first.updateOnly = true
    var second = first
    second.remove = false
    second.updateOnly = false
    second.presharedKey = .zero
    second.endpoint = SocketAddress(try #require(IPAddress("fe80::1")), port: 3, scope: 1)
    second.persistentKeepalive = 25
    second.replaceAllowedIPs = true
    second.allowedIPs = [
      .init(try #require(IPPrefix("10.0.0.0/8"))), .init(try #require(IPPrefix("fd00::/64")), remove: true),
    ]
    expected.peers = [first, second]
    let text = """
      set=1
      private_key=\(zeroHex)
      listen_port=51820
      fwmark=4294967295
      replace_peers=true
      public_key=\(keyHex)
      remove=true
      update_only=true
      public_key=\(keyHex.uppercased())
      preshared_key=\(zeroHex)
      endpoint=[fe80::1%lo]:3
      persistent_keepalive_interval=25
      replace_allowed_ips=true
      allowed_ip=10.1.2.3/8
      allowed_ip=-fd00::/64
      protocol_version=1

      get=1

      set=1


      """
    #expect(requests(text) == [.set(expected), .get, .set(WireGuardInterfaceChange())])
    for pieces in [1, 2, 3, 7, 64, 65] { #expect(requests(text, pieces: pieces) == requests(text)) }
  }

  /// Error numbers as wireguard-go gives them.
  @Test(
    arguments: [
      ("listen_port=70000", WireGuardUAPIError.invalid), ("listen_port=", .invalid), ("listen_port=+5", .invalid),
      ("listen_port=0x5", .invalid), ("fwmark=", .invalid), ("fwmark=0x10", .invalid), ("fwmark=4294967296", .invalid),
      ("private_key=00", .invalid), ("private_key=\(keyHex)0", .invalid), ("private_key=", .invalid),
      ("replace_peers=false", .invalid), ("replace_peers=1", .invalid), ("foo=1", .invalid), ("nothing", .malformed),
      ("=", .invalid), ("allowed_ip=192.0.2.1/32", .invalid), ("protocol_version=1", .invalid),
      (" listen_port=5", .invalid),
      ("listen_port=5\r", .invalid), ("public_key=00", .invalid), ("public_key=\(keyHex)\nremove=false", .invalid),
      ("public_key=\(keyHex)\nremove=", .invalid), ("public_key=\(keyHex)\nupdate_only=x", .invalid),
      ("public_key=\(keyHex)\npreshared_key=", .invalid), ("public_key=\(keyHex)\nendpoint=host:5", .invalid),
      ("public_key=\(keyHex)\nendpoint=::1:5", .invalid), ("public_key=\(keyHex)\nendpoint=", .invalid),
      ("public_key=\(keyHex)\nendpoint=192.0.2.1:99999", .invalid),
      ("public_key=\(keyHex)\nendpoint=[fe80::1%nope]:1", .invalid),
      ("public_key=\(keyHex)\npersistent_keepalive_interval=70000", .invalid),
      ("public_key=\(keyHex)\npersistent_keepalive_interval=off", .invalid),
      ("public_key=\(keyHex)\nreplace_allowed_ips=false", .invalid),
      ("public_key=\(keyHex)\nallowed_ip=10.0.0.1", .invalid),
      ("public_key=\(keyHex)\nallowed_ip=+10.0.0.0/8", .invalid),
      ("public_key=\(keyHex)\nallowed_ip=--10.0.0.0/8", .invalid), ("public_key=\(keyHex)\nallowed_ip=-", .invalid),
      ("public_key=\(keyHex)\nallowed_ip=10.0.0.0/33", .invalid), ("public_key=\(keyHex)\nallowed_ip=", .invalid),
      ("public_key=\(keyHex)\nprotocol_version=2", .invalid), ("public_key=\(keyHex)\nlisten_port=5", .invalid),
      ("public_key=\(keyHex)\nprivate_key=\(keyHex)", .invalid), ("public_key=\(keyHex)\ntx_bytes=5", .invalid),
      ("public_key=\(keyHex)\nlast_handshake_time_sec=1", .invalid),
    ])
  func aBadLineRefusesTheWholeTransaction(_ lines: String, _ error: WireGuardUAPIError) {
    let text = "set=1\nlisten_port=1\n\(lines)\nlisten_port=2\n\nget=1\n\n"
    // listen_port=1 before public_key is right, listen_port=2 behind an error is not looked at
    #expect(requests(text) == [.refused(error), .get])
    #expect(requests(text, pieces: 1) == [.refused(error), .get])
  }

  @Test(
    arguments: [
      ("endpoint=192.0.2.1:0", "192.0.2.1:0"), ("endpoint=[::1]:5", "[::1]:5"),
      ("endpoint=[fe80::1%9]:5", "[fe80::1%9]:5"),
      ("endpoint=[::ffff:192.0.2.1]:5", "[::ffff:192.0.2.1]:5"),
    ])
  func endpoints(_ line: String, _ text: String) {
    #expect(peerChange(line)?.endpoint?.description == text)
  }

  @Test(arguments: [
    ("allowed_ip=10.0.0.1/08", "10.0.0.0/8"), ("allowed_ip=::ffff:192.0.2.1/128", "::ffff:192.0.2.1/128"),
  ])
  func allowedIPs(_ line: String, _ text: String) {
    #expect(peerChange(line)?.allowedIPs.map(\.prefix.description) == [text])
  }

  @Test func whatIsNotEndedIsNotGivenOut() {
    #expect(requests("set=1\nlisten_port=4444\n") == [])
    #expect(requests("set=1\nlisten_port=4444") == [])
    #expect(requests("get=1\n") == [])
    #expect(requests("get=1") == [])
  }

  @Test func operationsThatAreNone() {
    #expect(requests("foo=1\n\nget=1\n\n") == [.unknownOperation])
    #expect(requests("set=2\n\n") == [.unknownOperation])
    #expect(requests("get=1 \n\n") == [.unknownOperation])
    #expect(requests("get=1\nx\n\nget=1\n\n") == [.refused(.invalid), .get])
    #expect(requests("set=1\nbad\nget=1\n\n") == [.refused(.malformed), .get])
    #expect(requests("\n\nget=1\n\n") == [.get])
  }

  @Test func linesHaveALimit() {
    let long = String(repeating: "a", count: 1_000_000)
    #expect(requests("set=1\n\(long)=1\n\nget=1\n\n", pieces: 1000) == [.refused(.io)])
    #expect(requests(long, pieces: 1000) == [.unknownOperation])
    var reader = WireGuardUAPIReader()
    let bytes = Array(long.utf8)
    reader.append(bytes.span.bytes)
    let first = reader.next()
    let isClosed = reader.isClosed
    #expect(first == .unknownOperation)
    #expect(isClosed)
    reader.append(bytes.span.bytes)
    #expect(reader.next() == nil)
  }

  @Test func tenThousandPeersInOneTransaction() {
    var text = "set=1\nreplace_peers=true\n"
    for index in 0..<10_000 {
      let digits = String(index, radix: 16)
      text += "public_key=" + String(repeating: "0", count: 64 - digits.utf8.count) + digits
      text += "\nallowed_ip=10.\(index >> 8).\(index & 255).0/24\nallowed_ip=fd00:\(digits)::/64\n"
    }
    let found = requests(text + "\n", pieces: 4096)
    guard case .set(let change)? = found.first else {
      Issue.record("no transaction")
      return
    }
    #expect(found.count == 1)
    #expect(change.peers.count == 10_000)
    #expect(change.peers.last?.allowedIPs.map(\.prefix.description) == ["10.39.15.0/24", "fd00:270f::/64"])
  }

  @Test func theAnswerToAGet() throws {
    var interface = WireGuardInterfaceStatus()
    var peer = WireGuardPeerStatus(publicKey: try #require(PublicKey(hex: keyHex)))
    func answer() -> String {
      var buffer = SecretBuffer()
      WireGuardUAPIResponse.append(interface, to: &buffer)
      WireGuardUAPIResponse.append(peer, to: &buffer)
      WireGuardUAPIResponse.append(.none, to: &buffer)
      return buffer.text()
    }
    #expect(
      answer() == """
        public_key=\(keyHex)
        preshared_key=\(zeroHex)
        protocol_version=1
        last_handshake_time_sec=0
        last_handshake_time_nsec=0
        tx_bytes=0
        rx_bytes=0
        persistent_keepalive_interval=0
        errno=0


        """)
    interface = WireGuardInterfaceStatus(
      privateKey: PrivateKey(base64: TestKeys.aPrivate), listenPort: 60205, firewallMark: 16)
    peer.presharedKey = PresharedKey(base64: TestKeys.shared)
    peer.endpoint = SocketAddress(try #require(IPAddress("2001:db8::1")), port: 5)
    peer.lastHandshake = 1_700_000_000_000_000_005
    peer.sentBytes = .max
    peer.receivedBytes = 9
    peer.persistentKeepalive = 25
    peer.allowedIPs = ["10.0.0.0/8", "::/0"].compactMap { IPPrefix($0) }
    #expect(
      answer() == """
        private_key=00ab0e947f5caa6f53042086d01ee69dd9ecf6caba60469a6fd34e0b9da0fa48
        listen_port=60205
        fwmark=16
        public_key=\(keyHex)
        preshared_key=9e6ef675ffc8fa197d2fb2d631f54f69a6b976dfb6f52e0d90470ef956a0d863
        protocol_version=1
        endpoint=[2001:db8::1]:5
        last_handshake_time_sec=1700000000
        last_handshake_time_nsec=5
        tx_bytes=18446744073709551615
        rx_bytes=9
        persistent_keepalive_interval=25
        allowed_ip=10.0.0.0/8
        allowed_ip=::/0
        errno=0


        """)
  }

  @Test func errorNumbersAreNegative() {
    #expect(WireGuardUAPIError(errno: 22) == .invalid)
    #expect(WireGuardUAPIError(errno: -98) == .portInUse)
    #expect("\(WireGuardUAPIError.malformed)" == "errno=-71")
    #expect(WireGuardUAPIError.none.code == 0)
  }

  /// Any bytes, in any pieces: the reader says the same and stays within its memory.
  @Test func anyBytesInAnyPieces() {
    var generator = SeededGenerator(seed: 11)
    let words = [
      "set=1\n", "get=1\n", "\n", "public_key=\(keyHex)\n", "allowed_ip=10.0.0.0/8\n", "listen_port=", "endpoint=[",
      "-", "=",
      "\0", "remove=true\n", "5\n", "\r\n",
    ]
    for _ in 0..<1500 {
      var text = ""
      for _ in 0..<generator.below(30) { text += words[generator.below(words.count)] }
      #expect(requests(text) == requests(text, pieces: 1 + generator.below(9)), "\(text)")
    }
  }
}
