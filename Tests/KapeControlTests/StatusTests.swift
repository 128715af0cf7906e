import CKapeDataPlane
import KapeCrypto
import KapeProtocols
import Testing

@testable import KapeControl

@Suite struct StatusTests {
  static let key = PublicKey(hex: String(repeating: "ab", count: 32))

  private func report() throws -> InterfaceReport {
    var report = InterfaceReport(name: "wg0", program: "kape up")
    report.process = 42
    report.configurationFile = "/etc/wireguard/wg0.conf"
    report.upSince = 1_764_497_348_007_000_000
    report.publicKey = Self.key
    report.listenPort = 51820
    var settings = AppliedSettings()
    settings.addresses = [try #require(InterfaceAddress("10.77.0.2/24"))]
    settings.mtu = 1420
    settings.routes = [Route(try #require(IPPrefix("0.0.0.0/0")), table: 51820)]
    settings.rules = PolicyRule.fullTunnel(.ipv4, table: 51820)
    settings.fullTunnels = [.ipv4]
    settings.table = 51820
    settings.guardTables = ["kape-wg0"]
    report.settings = settings
    var peer = InterfaceReport.Peer(publicKey: try #require(Self.key))
    peer.endpoint = SocketAddress(IPAddress(ipv4: 192, 0, 2, 1), port: 51820)
    peer.endpointName = "vpn.example.net:51820"
    peer.allowedIPs = [try #require(IPPrefix("0.0.0.0/0"))]
    peer.latestHandshake = 1_764_497_348_000_000_000
    peer.receivedBytes = 3_000
    peer.sentBytes = 5_000
    peer.insideReceivedBytes = 2_000
    peer.insideSentBytes = 4_000
    report.peers = [peer]
    report.counters = [.init("REPLAYED", 3)]
    report.warnings = ["a \"quoted\"\twarning"]
    return report
  }

  @Test func numbersAreIntegersAndTimesAreRFC3339() throws {
    let text = StatusJSON.document([StatusJSON.text(try report())], at: 1_764_497_350_123_456_789).text
    for expected in [
      "\"version\": 1", "\"generated_at\": \"2025-11-30T10:09:10.123Z\"", "\"up_since\": \"2025-11-30T10:09:08.007Z\"",
      "\"latest_handshake_at\": \"2025-11-30T10:09:08.000Z\"", "\"received_bytes\": 3000",
      "\"inside_sent_bytes\": 4000",
      "\"received_bytes_per_second\": null", "\"persistent_keepalive_ns\": 0", "\"ipv4\": true", "\"ipv6\": false",
      "\"replayed\": 3", "\"suppress_prefix_length\": 0", "\"process_id\": 42", "a \\\"quoted\\\"\\twarning",
    ] {
      #expect(text.contains(expected), "\(expected) is not in \(text)")
    }
  }

  @Test func ratesComeFromTwoReports() throws {
    let earlier = try report()
    var later = earlier
    later.peers[0].receivedBytes += 500
    later.peers[0].sentBytes -= 1
    later.measureRates(since: earlier, nanoseconds: 250_000_000)
    #expect(later.peers[0].receivedRate == 2000)
    #expect(later.peers[0].sentRate == 0)
  }

  @Test func peopleAreToldWhatIsNotInTheTunnel() throws {
    let text = StatusText.text([try report()], now: 1_764_497_348_000_000_000 + 3_725_000_000_000)
    for expected in [
      "interface: wg0\n", "run by: kape up, process 42, /etc/wireguard/wg0.conf",
      "IPv4 only; IPv6 goes on outside the tunnel",
      "latest handshake: 1 h 2 min ago", "transfer: 2.92 KiB received, 4.88 KiB sent", "(vpn.example.net:51820)",
      "0.0.0.0/0 in table 51820", "replayed: 3",
    ] {
      #expect(text.contains(expected), "\(expected) is not in \(text)")
    }
  }

  @Test(
    arguments: [
      (0, "0 B"), (1023, "1023 B"), (1024, "1.00 KiB"), (1536, "1.50 KiB"), (1 << 40, "1.00 TiB"),
      (.max, "16384.00 PiB"),
    ] as [(UInt64, String)])
  func sizesAreReadable(_ bytes: UInt64, _ expected: String) {
    // The largest number is cut, not rounded.
    #expect(StatusText.size(bytes) == (bytes == .max ? "16383.99 PiB" : expected))
  }

  @Test func whatEndedInTheEngineAndInTheSocketsIsCountedTogether() {
    var engine = kdp_statistics()
    var io = kdp_io_statistics()
    engine.handshakes = 2
    withUnsafeMutableBytes(of: &engine.status) { bytes in
      let status = bytes.bindMemory(to: UInt64.self)
      status[Int(KDP_OK.rawValue)] = 99
      status[Int(KDP_REPLAYED.rawValue)] = 3
      status[Int(KDP_CHECKSUM.rawValue)] = 1
    }
    withUnsafeMutableBytes(of: &io.status) { bytes in
      let status = bytes.bindMemory(to: UInt64.self)
      status[Int(KDP_CHECKSUM.rawValue)] = 1
      status[Int(KDP_TRUNCATED.rawValue)] = 4
      status[Int(KDP_SEND_REFUSED.rawValue)] = 5
      status[Int(KDP_SEND_TOO_BIG.rawValue)] = 6
      status[Int(KDP_INSIDE_REFUSED.rawValue)] = 7
    }
    io.udp_sends = 8
    let expected: [InterfaceReport.Counter] = [
      .init("handshakes", 2), .init("TRUNCATED", 4), .init("REPLAYED", 3), .init("CHECKSUM", 2),
      .init("SEND_REFUSED", 5), .init("SEND_TOO_BIG", 6), .init("INSIDE_REFUSED", 7), .init("udp_sends", 8),
    ]
    #expect(InterfaceReport.counters(engine, io) == expected)
  }

  @Test func aFallbackForOneDestinationSaysWhich() throws {
    var event = kdp_event()
    event.kind = UInt16(KDP_EVENT_FALLBACK.rawValue)
    event.value = UInt64(KDP_FALLBACK_NO_UDP_SEGMENT.rawValue)
    #expect(TunnelEvent(event)?.address == nil)
    event.address = SocketAddress(IPAddress(ipv4: 192, 0, 2, 1), port: 7).dataPlane
    let scoped = try #require(TunnelEvent(event))
    #expect(scoped.address?.description == "192.0.2.1:7" && scoped.turnedOff.list == "no-udp-segment")
  }

  @Test func aWorkerThatHasEndedIsToldFromFailures() {
    #expect(TunnelError("worker", KDP_CLOSED).isClosed)
    #expect(!TunnelError("worker", KDP_SYSTEM, systemCode: 5).isClosed)
  }

  @Test func theStatusSocketIsBesideTheConfigurationSocketAndNoInterfaceToWg() {
    #expect(StatusSocket.path(of: "wg0") == "/var/run/wireguard/wg0.status")
    #expect(StatusSocket.path(beside: "/x/handed.sock") == "/x/handed.status")
    #expect(StatusSocket.path(beside: "/x/odd") == "/x/odd.status")
  }

  @Test func jsonIsEscapedAndOrdered() {
    let value = JSONValue.object([
      .init("b", .array([])), .init("a", .array([.null, .bool(true), .unsigned(.max)])), .init("c", .object([])),
      .init("d", .string("\u{1}\u{7F}é\\")), .init("e", .verbatim("{}")),
    ])
    #expect(
      value.text == """
        {
          "b": [],
          "a": [
            null,
            true,
            18446744073709551615
          ],
          "c": {},
          "d": "\\u0001\\u007fé\\\\",
          "e": {}
        }
        """)
  }

  @Test func anAnswerOfTheConfigurationProtocolIsRead() throws {
    var reader = ConfigurationProtocolClient.Reader(name: "wg0")
    let answer = """
      private_key=\(String(repeating: "11", count: 32))
      listen_port=51820
      fwmark=5
      public_key=\(String(repeating: "ab", count: 32))
      preshared_key=\(String(repeating: "00", count: 32))
      endpoint=[2001:db8::1]:7
      last_handshake_time_sec=10
      last_handshake_time_nsec=5
      tx_bytes=7
      rx_bytes=8
      persistent_keepalive_interval=25
      allowed_ip=10.0.0.0/8
      allowed_ip=::/0
      protocol_version=1
      errno=0


      """
    var bytes = Array(answer.utf8)
    // In pieces, as a socket gives it.
    var fed: [UInt8] = []
    while !bytes.isEmpty {
      fed += bytes.prefix(7)
      bytes.removeFirst(min(7, bytes.count))
      let used = fed.withUnsafeBytes { reader.read($0.bytes) }
      fed.removeFirst(used)
    }
    #expect(reader.isComplete && reader.isRight)
    let report = reader.report
    #expect(report.publicKey == PrivateKey(hex: Array(String(repeating: "11", count: 32).utf8).span.bytes)?.publicKey)
    #expect(report.listenPort == 51820 && report.firewallMark == 5)
    let peer = try #require(report.peers.first)
    #expect(peer.publicKey == Self.key && !peer.hasPresharedKey)
    #expect(peer.latestHandshake == 10_000_000_005 && peer.receivedBytes == 8 && peer.sentBytes == 7)
    #expect(peer.allowedIPs.count == 2 && peer.persistentKeepalive == 25)
    #expect(peer.endpoint?.description == "[2001:db8::1]:7")
  }
}
