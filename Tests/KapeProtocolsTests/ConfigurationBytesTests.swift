import KapeCrypto
import KapeTestSupport
import Testing

@testable import KapeProtocols

/// Bytes of every kind go in; what comes out keeps its promises.
@Suite struct ConfigurationBytesTests {
  private static func check(_ bytes: [UInt8], _ seed: Int) {
    let parsed = WireGuardConfiguration.parse(bytes.span.bytes, file: "f")
    _ = ConfigurationKind.detect(bytes.span.bytes)
    #expect((parsed.configuration == nil) == parsed.diagnostics.contains { $0.severity == .error }, "seed \(seed)")
    guard let configuration = parsed.configuration else { return }
    var printed = SecretBuffer()
    configuration.write(to: &printed)
    let text = printed.bytes()
    let again = WireGuardConfiguration.parse(text.span.bytes)
    #expect(again.configuration == configuration, "seed \(seed): \(printed.text())\n\(again.diagnostics)")
    var twice = SecretBuffer()
    again.configuration?.write(to: &twice)
    #expect(twice.bytes() == text, "seed \(seed)")
    var stripped = SecretBuffer()
    WireGuardConfiguration.strip(bytes.span.bytes, to: &stripped)
    let strippedBytes = stripped.bytes()
    let rest = WireGuardConfiguration.parse(strippedBytes.span.bytes).configuration
    #expect(rest?.peers == configuration.peers, "seed \(seed)")
    #expect(rest?.interface.privateKey == configuration.interface.privateKey, "seed \(seed)")
    #expect(rest?.interface.addresses == [] && rest?.interface.postUp == [], "seed \(seed)")
  }

  @Test func rightFilesInEverySpelling() {
    for seed in 0..<400 {
      var writer = RandomSpelling(seed: UInt64(seed + 100_000))
      let text = writer.file(wgQuickKeys: seed % 3 != 0)
      #expect(WireGuardConfiguration.parse(text).configuration != nil, "seed \(seed)\n\(text)")
      Self.check(Array(text.utf8), seed)
    }
  }

  @Test func damagedFiles() {
    for seed in 0..<2000 {
      var writer = RandomSpelling(seed: UInt64(seed + 200_000))
      Self.check(Array(writer.damaged(writer.file(wgQuickKeys: seed % 2 == 0)).utf8), seed)
    }
  }

  @Test func noise() {
    var generator = SeededGenerator(seed: 5)
    for seed in 0..<1000 {
      var bytes = Array("[Interface]\n".utf8)
      for _ in 0..<generator.below(200) { bytes.append(UInt8.random(in: 0...255, using: &generator)) }
      Self.check(bytes, seed)
      bytes.shuffle(using: &generator)
      Self.check(bytes, seed)
    }
    for byte in UInt8.min...UInt8.max { Self.check([byte], Int(byte)) }
  }

  @Test func tenThousandPeers() throws {
    var text = "[Interface]\nPrivateKey = \(TestKeys.aPrivate)\n"
    for index in 0..<10_000 {
      var bytes = [UInt8](repeating: 1, count: 32)
      bytes[0] = UInt8(index >> 8)
      bytes[1] = UInt8(index & 255)
      text +=
        "[Peer]\nPublicKey = \(PublicKey(bytes: bytes.span.bytes)?.base64 ?? "")\nPresharedKey = \(TestKeys.shared)\n"
      text += "AllowedIPs = 10.\(index >> 8).\(index & 255).0/24, fd00:\(String(index, radix: 16))::/64\n"
    }
    let configuration = try WireGuardConfiguration.parse(text).get()
    #expect(configuration.peers.count == 10_000)
    #expect(configuration.peers[9999].allowedIPs.count == 2)
  }

  @Test(
    arguments: [
      ("[Interface]", ConfigurationKind.wireGuard), ("\u{FEFF}# c\r\n\r\n [ peer ]\r\n", .wireGuard),
      ("PrivateKey = x\n[Interface]\n", .wireGuard),
      ("client\ndev tun\n", .openVPN), ("# c\n; d\nremote vpn.example.net 1194 udp\n", .openVPN), ("<ca>\n", .openVPN),
      ("--dev tun\n", .openVPN), ("setenv FRIENDLY_NAME x: y\n", .openVPN),
      ("---\nserver: x\n", .lightway), ("mode: tcp\nserver: a:1\n", .lightway), ("# c\nuser:\n", .lightway),
    ])
  func theKindIsToldByTheContent(_ text: String, _ kind: ConfigurationKind) {
    let bytes = Array(text.utf8)
    let found = ConfigurationKind.detect(bytes.span.bytes)
    #expect(found == kind)
  }

  @Test(arguments: ["", "\n\n", "# [Interface]\n", "hello world\n", "<html>\n", "{\"a\": 1}", "\0\u{1}\u{2}"])
  func whatIsNoConfigurationHasNoKind(_ text: String) {
    let bytes = Array(text.utf8)
    let found = ConfigurationKind.detect(bytes.span.bytes)
    #expect(found == nil)
  }
}
