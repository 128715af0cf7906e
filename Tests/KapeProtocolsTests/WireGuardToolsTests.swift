import Foundation
import KapeCrypto
import KapeTestSupport
import Testing

@testable import KapeProtocols

/// The real `wg` and `wg-quick` read what our reader reads; the two must agree on what is right and on what it says.
@Suite(.enabled(if: ProtocolSocket.isPossible, "needs root, wg, wg-quick and unshare"))
struct WireGuardToolsTests {
  /// What `wg setconf` sends for a file; nil: it refuses it.
  static func setconf(_ text: [UInt8], _ socket: ProtocolSocket) throws -> WireGuardInterfaceChange? {
    let path = FileManager.default.temporaryDirectory.appendingPathComponent("\(socket.name).conf").path
    try Data(text).write(to: URL(fileURLWithPath: path))
    defer { unlink(path) }
    let wg = try Execution.run(["unshare", "-n", "wg", "setconf", socket.name, path])
    let changes = socket.takeChanges()
    if wg.status != 0 { return nil }
    try #require(changes.count == 1)
    return changes.first
  }

  static func wgQuickStrip(_ text: [UInt8], _ name: String) throws -> Execution {
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: directory) }
    let path = directory.appendingPathComponent("\(name).conf")
    try Data(text).write(to: path)
    return try Execution.run(["wg-quick", "strip", path.path])
  }

  /// A scope's name as wg in its empty network namespace knows it.
  static func address(_ endpoint: WireGuardEndpoint) -> SocketAddress? {
    if case .name("localhost") = endpoint.host {
      return SocketAddress(IPAddress(ipv4: 127, 0, 0, 1), port: endpoint.port)
    }
    return endpoint.socketAddress { $0 == "lo" ? 1 : nil }
  }

  /// Endpoints that wg would have to ask a name server for, and scopes of interfaces that are not there, are not ours to
  /// decide.
  static func dependsOnTheSystem(_ text: String) -> Bool {
    text.split(whereSeparator: { $0 == "\n" || $0 == "\r\n" }).contains { line in
      let content = line.prefix { $0 != "#" }.filter { !$0.isWhitespace }
      guard content.lowercased().hasPrefix("endpoint="),
        let endpoint = try? WireGuardEndpoint(String(content.dropFirst("endpoint=".count)))
      else { return false }
      if case .name(let name) = endpoint.host { return name != "localhost" }
      return address(endpoint) == nil
    }
  }

  /// The documented differences: where wg's answer to a file is not ours.
  static func isDocumentedDifference(_ text: String, ours: ParsedConfiguration<WireGuardConfiguration>) -> Bool {
    if ours.configuration != nil {
      return text.hasPrefix("\u{FEFF}") || ours.diagnostics.contains { $0.reason.contains("adds no prefix") }
        || text.lowercased().filter { !$0.isWhitespace }.contains(/allowedips=([^a-z]*,)?[+-]/)
    }
    return ours.diagnostics.contains {
      $0.reason.contains(/[0-9]{5,}' is no UDP port/) || $0.reason.contains(/[0-9]{5,}' has no valid port/)
        || $0.reason.contains("all zero")
    }
  }

  @Test(arguments: 0..<4)
  func wgMakesOfARandomSpellingWhatWeMake(_ part: Int) throws {
    let socket = try ProtocolSocket("s\(part)")
    defer { socket.stop() }
    var accepted = 0
    for seed in 0..<60 {
      var writer = RandomSpelling(seed: UInt64(part * 1000 + seed))
      let text = writer.file(wgQuickKeys: false)
      let ours = WireGuardConfiguration.parse(text)
      let configuration = try #require(ours.configuration, "seed \(seed): \(ours.diagnostics)\n\(text)")
      let theirs = try #require(try Self.setconf(Array(text.utf8), socket), "seed \(seed): wg refuses\n\(text)")
      let expected = ReferenceDevice.after(theirs)
      #expect(ReferenceDevice.after(configuration.change(address: Self.address)) == expected, "seed \(seed)\n\(text)")

      var printed = SecretBuffer()
      configuration.write(.wg, to: &printed)
      let again = try #require(try Self.setconf(printed.bytes(), socket), "wg refuses what we print\n\(printed.text())")
      #expect(ReferenceDevice.after(again) == expected, "seed \(seed)\n\(text)")
      accepted += 1
    }
    #expect(accepted == 60)
  }

  @Test(arguments: 0..<4)
  func wgRefusesWhatWeRefuseAndTakesWhatWeTake(_ part: Int) throws {
    let socket = try ProtocolSocket("m\(part)")
    defer { socket.stop() }
    var outcomes = (both: 0, neither: 0, documented: 0)
    for seed in 0..<200 {
      var writer = RandomSpelling(seed: UInt64(part * 1000 + seed + 500_000))
      let text = writer.damaged(writer.file(wgQuickKeys: false))
      let ours = WireGuardConfiguration.parse(text)
      if Self.dependsOnTheSystem(text) { continue }
      let theirs = try Self.setconf(Array(text.utf8), socket)
      switch (ours.configuration, theirs) {
      case (let configuration?, let change?):
        outcomes.both += 1
        #expect(
          ReferenceDevice.after(configuration.change(address: Self.address)) == ReferenceDevice.after(change),
          "seed \(seed)\n\(text)")
      case (nil, nil): outcomes.neither += 1
      default:
        outcomes.documented += 1
        #expect(
          Self.isDocumentedDifference(text, ours: ours),
          "seed \(seed): wg \(theirs == nil ? "refuses" : "takes") it\n\(ours.diagnostics)\n\(text)")
      }
    }
    #expect(outcomes.both >= 10, "\(outcomes)")
    #expect(outcomes.neither >= 30, "\(outcomes)")
  }

  /// Byte for byte, comments included.
  @Test func stripPrintsWhatWgQuickStripPrints() throws {
    for seed in 0..<40 {
      var writer = RandomSpelling(seed: UInt64(seed + 900_000))
      let text = writer.file(wgQuickKeys: true)
      #expect(WireGuardConfiguration.parse(text).configuration != nil, "seed \(seed)\n\(text)")
      let theirs = try Self.wgQuickStrip(Array(text.utf8), "ktstrip")
      #expect(theirs.status == 0)
      var ours = SecretBuffer()
      WireGuardConfiguration.strip(Array(text.utf8).span.bytes, to: &ours)
      #expect(ours.text() == theirs.text, "seed \(seed)\n\(text)")
    }
  }

  /// wg-quick's own reader, run by itself, fills the same fields.
  @Test func wgQuickReadsItsKeysAsWeDo() throws {
    let script = """
      source <(sed -n '/^parse_options()/,/^}/p; /^read_bool()/,/^}/p; /^die()/,/^}/p' /usr/bin/wg-quick)
      shopt -s extglob; set -f
      ADDRESSES=() DNS=() DNS_SEARCH=() PRE_UP=() POST_UP=() PRE_DOWN=() POST_DOWN=() SAVE_CONFIG=0
      parse_options "$1" 2>/dev/null
      field() { printf '%s\\n' "$@"; echo --; }
      field "${ADDRESSES[@]}"; field "${DNS[@]}"; field "${DNS_SEARCH[@]}"; field "$MTU"; field "$TABLE"
      field "${PRE_UP[@]}"; field "${POST_UP[@]}"; field "${PRE_DOWN[@]}"; field "${POST_DOWN[@]}"; field "$SAVE_CONFIG"
      """
    for seed in 0..<40 {
      var writer = RandomSpelling(seed: UInt64(seed + 700_000))
      let text = writer.file(wgQuickKeys: true)
      let interface = try WireGuardConfiguration.parse(text).get().interface
      let directory = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
      try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
      defer { try? FileManager.default.removeItem(at: directory) }
      let path = directory.appendingPathComponent("ktread.conf")
      try Data(text.utf8).write(to: path)
      let result = try Execution.run(["bash", "-c", script, "bash", path.path])
      let fields = result.text.components(separatedBy: "--\n").map {
        $0.split(separator: "\n", omittingEmptySubsequences: true).map(String.init)
      }
      try #require(fields.count == 11, "seed \(seed)\n\(result.text)\n\(result.errors)")
      #expect(fields[0].map { InterfaceAddress($0) } == interface.addresses, "seed \(seed)\n\(text)")
      #expect(fields[1].map { IPAddress($0)?.description } == interface.dnsServers.map(\.description), "seed \(seed)")
      #expect(fields[2] == interface.dnsSearchDomains, "seed \(seed)\n\(text)")
      #expect(fields[3] == (interface.mtu.map { ["\($0)"] } ?? []), "seed \(seed)\n\(text)")
      let table = WireGuardConfiguration.parse("[Interface]\nTable = \(fields[4].first ?? "")").configuration?.interface
        .table
      #expect(table == interface.table, "seed \(seed)\n\(text)")
      #expect(fields[5] == interface.preUp, "seed \(seed)\n\(text)")
      #expect(fields[6] == interface.postUp, "seed \(seed)\n\(text)")
      #expect(fields[7] == interface.preDown, "seed \(seed)\n\(text)")
      #expect(fields[8] == interface.postDown, "seed \(seed)\n\(text)")
      #expect(fields[9] == [interface.saveConfig ? "1" : "0"], "seed \(seed)\n\(text)")
    }
  }

  @Test func wgShowsWhatWeAnswer() throws {
    var status = ProtocolSocket.Status()
    status.interface = WireGuardInterfaceStatus(
      privateKey: PrivateKey(base64: TestKeys.aPrivate), listenPort: 51820, firewallMark: 0xCA6C)
    var first = WireGuardPeerStatus(publicKey: try #require(PublicKey(base64: TestKeys.bPublic)))
    first.presharedKey = PresharedKey(base64: TestKeys.shared)
    first.endpoint = SocketAddress(try #require(IPAddress("fe80::1")), port: 5, scope: 1)
    first.persistentKeepalive = 25
    first.lastHandshake = 1_700_000_001_234_567_890
    first.receivedBytes = 18_446_744_073_709
    first.sentBytes = 7
    first.allowedIPs = ["10.0.0.0/8", "fd00::/64"].compactMap { IPPrefix($0) }
    let second = WireGuardPeerStatus(publicKey: try #require(PublicKey(base64: TestKeys.cPublic)))
    status.peers = [first, second]
    let socket = try ProtocolSocket("show", status: status)
    defer { socket.stop() }
    let wg = try Execution.run(["wg", "show", socket.name, "dump"])
    #expect(
      wg.text == """
        \(TestKeys.aPrivate)\t\(TestKeys.aPublic)\t51820\t0xca6c
        \(TestKeys.bPublic)\t\(TestKeys.shared)\t[fe80::1%lo]:5\t10.0.0.0/8,fd00::/64\t1700000001\t18446744073709\t7\t25
        \(TestKeys.cPublic)\t(none)\t(none)\t(none)\t0\t0\t0\toff

        """)
  }

  @Test func wgSetSendsWhatWeRead() throws {
    let socket = try ProtocolSocket("set")
    defer { socket.stop() }
    let key = FileManager.default.temporaryDirectory.appendingPathComponent("\(socket.name).key").path
    try Data("\(TestKeys.aPrivate)\n".utf8).write(to: URL(fileURLWithPath: key))
    defer { unlink(key) }
    let wg = try Execution.run([
      "wg", "set", socket.name, "private-key", key, "listen-port", "7", "fwmark", "0x9", "peer", TestKeys.bPublic,
      "remove",
      "peer", TestKeys.cPublic, "endpoint", "[fe80::1%lo]:3", "persistent-keepalive", "off", "allowed-ips",
      "::/0,10.0.0.9",
    ])
    #expect(wg.status == 0, "\(wg.errors)")
    var expected = WireGuardInterfaceChange()
    expected.privateKey = PrivateKey(base64: TestKeys.aPrivate)
    expected.listenPort = 7
    expected.firewallMark = 9
    var removed = WireGuardPeerChange(publicKey: try #require(PublicKey(base64: TestKeys.bPublic)))
    removed.remove = true
    var changed = WireGuardPeerChange(publicKey: try #require(PublicKey(base64: TestKeys.cPublic)))
    changed.endpoint = SocketAddress(try #require(IPAddress("fe80::1")), port: 3, scope: 1)
    changed.persistentKeepalive = 0
    changed.replaceAllowedIPs = true
    changed.allowedIPs = ["::/0", "10.0.0.9/32"].compactMap { IPPrefix($0) }.map { WireGuardAllowedIPChange($0) }
    expected.peers = [removed, changed]
    #expect(socket.takeChanges() == [expected])
  }
}
