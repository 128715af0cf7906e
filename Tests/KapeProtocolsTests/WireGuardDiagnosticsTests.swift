import KapeCrypto
import KapeTestSupport
import Testing

@testable import KapeProtocols

/// One mistake: what stands where, and what is said about it.
struct Mistake: CustomTestStringConvertible, Sendable {
  let text: String
  let line: Int?
  let key: String?
  let reason: String
  let remedy: String

  init(_ text: String, _ line: Int?, _ key: String?, _ reason: String, _ remedy: String) {
    self.text = text
    self.line = line
    self.key = key
    self.reason = reason
    self.remedy = remedy
  }

  var testDescription: String { text.replacing("\n", with: " | ") }
}

private let peer = "[Peer]\nPublicKey = \(TestKeys.bPublic)\n"
private let interface = "[Interface]\nPrivateKey = \(TestKeys.aPrivate)\n"

@Suite struct WireGuardDiagnosticsTests {
  @Test(
    arguments: [
      Mistake("[Interface]\nPrivatKey = x", 2, "PrivatKey", "unknown key", "did you mean PrivateKey?"),
      Mistake(peer + "AllowedIP = ::/0", 3, "AllowedIP", "unknown key", "did you mean AllowedIPs?"),
      Mistake(peer + "PreSharedKye = ::/0", 3, "PreSharedKye", "unknown key", "did you mean PresharedKey?"),
      Mistake("[Interface]\nCompletelyElse = 1", 2, "CompletelyElse", "unknown key", "wg-quick(8)"),
      Mistake("[Interface]\nJc = 4", 2, "Jc", "AmneziaWG", "AmneziaWG"),
      Mistake("[Interface]\njmin = 4", 2, "jmin", "AmneziaWG", "AmneziaWG"),
      Mistake("[Interface]\nS4 = 4", 2, "S4", "AmneziaWG", "AmneziaWG"),
      Mistake("[Interface]\nH1 = 4", 2, "H1", "AmneziaWG", "AmneziaWG"),
      Mistake("[Interface]\nI5 = <b 0x>", 2, "I5", "AmneziaWG", "AmneziaWG"),
      Mistake("[Interfaces]\nMTU = 1", 1, nil, "'[Interfaces]' is no section", "did you mean [Interface]?"),
      Mistake("[Pear]\n", 1, nil, "no section", "did you mean [Peer]?"),
      Mistake("[Else]\n", 1, nil, "no section", "there are [Interface] and [Peer]"),
      Mistake("[Interface\n", 1, nil, "no section", "did you mean [Interface]?"),
      Mistake("MTU = 1400\n", 1, "MTU", "before the first section", "[Interface]"),
      Mistake(peer + "MTU = 1400\n", 3, "MTU", "in a [Peer] section", "[Interface]"),
      Mistake("[Interface]\nAllowedIPs = ::/0\n", 2, "AllowedIPs", "in a [Interface] section", "[Peer]"),
      Mistake("[Interface]\nMTU 1400\n", 2, nil, "no '='", "KEY = VALUE"),
      Mistake("[Interface]\nMTU\n", 2, "MTU", "no '='", "MTU = VALUE"),
      Mistake("[Interface]\n; comment\n", 2, nil, "no '='", "#"),
      Mistake("[Interface]\nPrivateKey = AAAA\n", 2, "PrivateKey", "44 characters, this has 4", "whole key"),
      Mistake(
        "[Interface]\nPrivateKey = \(String(repeating: "A", count: 44))\n", 2, "PrivateKey", "base64 form of 32 bytes",
        "'='"),
      Mistake("[Interface]\nPrivateKey =\n", 2, "PrivateKey", "no value", "leave the line out"),
      Mistake("[Interface]\nListenPort = 65536\n", 2, "ListenPort", "'65536' is no UDP port", "65535"),
      Mistake("[Interface]\nListenPort = any\n", 2, "ListenPort", "'any' is no UDP port", "number"),
      Mistake("[Interface]\nFwMark = 0X10\n", 2, "FwMark", "is no mark", "off"),
      Mistake("[Interface]\nFwMark = 0x100000000\n", 2, "FwMark", "is no mark", "0xffffffff"),
      Mistake("[Interface]\nAddress = 10.0.0.1/33\n", 2, "Address", "'10.0.0.1/33' is no address", "ADDRESS/LENGTH"),
      Mistake("[Interface]\nAddress = 10.0.0.1/24, x\n", 2, "Address", "'x' is no address", "ADDRESS/LENGTH"),
      Mistake("[Interface]\nDNS = 1.1.1\n", 2, "DNS", "'1.1.1' is no address", "address"),
      Mistake("[Interface]\nDNS = 10.0.0.1:53\n", 2, "DNS", "is no address", "without port"),
      Mistake("[Interface]\nDNS = a$b\n", 2, "DNS", "neither an address nor a domain", "domains"),
      Mistake("[Interface]\nMTU = 67\n", 2, "MTU", "is no MTU", "68"),
      Mistake("[Interface]\nMTU = 65536\n", 2, "MTU", "is no MTU", "65535"),
      Mistake("[Interface]\nMTU = 01420\n", 2, "MTU", "is no MTU", "number"),
      Mistake("[Interface]\nTable = a b\n", 2, "Table", "is no routing table", "off"),
      Mistake("[Interface]\nTable = 4294967296\n", 2, "Table", "is no routing table", "off"),
      Mistake("[Interface]\nSaveConfig = yes\n", 2, "SaveConfig", "neither true nor false", "true or false"),
      Mistake("[Interface]\nSaveConfig =\n", 2, "SaveConfig", "no value", "true or false"),
      Mistake("[Peer]\nAllowedIPs = ::/0\n", 1, "PublicKey", "has none", "add PublicKey"),
      Mistake("[Peer]\nPublicKey = x\n", 2, "PublicKey", "44 characters", "whole key"),
      Mistake(
        "[Peer]\nPublicKey = AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n", 2, "PublicKey", "all zero", "public key"),
      Mistake(peer + "AllowedIPs = 10.0.0.0/8,\n", 3, "AllowedIPs", "comma", "comma"),
      Mistake(peer + "AllowedIPs = ,10.0.0.0/8\n", 3, "AllowedIPs", "comma", "comma"),
      Mistake(peer + "AllowedIPs = 10.0.0.0/33\n", 3, "AllowedIPs", "'10.0.0.0/33' is no prefix", "ADDRESS/LENGTH"),
      Mistake(peer + "AllowedIPs = ++::/0\n", 3, "AllowedIPs", "is no prefix", "ADDRESS/LENGTH"),
      Mistake(peer + "AllowedIPs = -\n", 3, "AllowedIPs", "is no prefix", "ADDRESS/LENGTH"),
      Mistake(peer + "Endpoint = [::1\n", 3, "Endpoint", "has no ']'", "[ADDRESS]:PORT"),
      Mistake(peer + "Endpoint = [::1]\n", 3, "Endpoint", "has no port", "[ADDRESS]:PORT"),
      Mistake(peer + "Endpoint = host\n", 3, "Endpoint", "'host' has no port", "HOST:PORT"),
      Mistake(peer + "Endpoint = host:\n", 3, "Endpoint", "has no port", "HOST:PORT"),
      Mistake(peer + "Endpoint = host:99999\n", 3, "Endpoint", "no valid port", "65535"),
      Mistake(peer + "Endpoint = ho/st:9\n", 3, "Endpoint", "host name", "HOST:PORT"),
      Mistake(peer + "Endpoint = ho..st:9\n", 3, "Endpoint", "host name", "HOST:PORT"),
      Mistake(peer + "PersistentKeepalive = 65536\n", 3, "PersistentKeepalive", "is no interval", "off"),
      Mistake(peer + "PersistentKeepalive = on\n", 3, "PersistentKeepalive", "is no interval", "off"),
      Mistake("[Interface]\nMTU = 1400\0\n", 2, nil, "zero byte", "plain text"),
      Mistake("[Interface]\nMTU = \u{E4}\n", 2, "MTU", "'\\xc3\\xa4' is no MTU", "number"),
    ])
  func aMistakeIsNamedWithLineKeyReasonAndRemedy(_ mistake: Mistake) throws {
    let parsed = WireGuardConfiguration.parse(mistake.text, file: "wg0.conf")
    #expect(parsed.configuration == nil)
    let errors = parsed.diagnostics.filter { $0.severity == .error }
    try #require(errors.count == 1, "\(parsed.diagnostics)")
    #expect(errors[0].file == "wg0.conf")
    #expect(errors[0].line == mistake.line)
    #expect(errors[0].key == mistake.key)
    #expect(errors[0].reason.contains(mistake.reason), "\(errors[0])")
    #expect(errors[0].remedy.contains(mistake.remedy), "\(errors[0])")
  }

  @Test(
    arguments: [
      Mistake(interface + "Address = fd00::1/64\nMTU = 1279", 4, "MTU", "1280", "raise"),
      Mistake(interface + peer + "AllowedIPs = 10.0.0.1/8", 5, "AllowedIPs", "bits beyond", "10.0.0.0/8"),
      Mistake(interface + "PostUp = echo 'a # b'", 3, "PostUp", "ends at '#'", "script"),
      Mistake(interface + "PostUp =", 3, "PostUp", "no value", "leave the line out"),
      Mistake("[Interface]\n", nil, "PrivateKey", "no private key", "genkey"),
      Mistake(peer, nil, nil, "no [Interface]", "PrivateKey"),
      Mistake(interface + "[Peer]\nPublicKey = \(TestKeys.aPublic)\n", 3, "PublicKey", "own public key", "other end"),
    ])
  func whatIsAcceptedWithAWarning(_ mistake: Mistake) throws {
    let parsed = WireGuardConfiguration.parse(mistake.text, file: "wg0.conf")
    #expect(parsed.configuration != nil)
    try #require(parsed.diagnostics.count == 1, "\(parsed.diagnostics)")
    let warning = parsed.diagnostics[0]
    #expect(warning.severity == .warning)
    #expect(warning.line == mistake.line)
    #expect(warning.key == mistake.key)
    #expect(warning.reason.contains(mistake.reason), "\(warning)")
    #expect(warning.remedy.contains(mistake.remedy), "\(warning)")
  }

  @Test func severalMistakesAreToldAtOnceInTheOrderOfLines() {
    let parsed = WireGuardConfiguration.parse(
      "[Interface]\nMTU = x\nJc = 1\n[Peer]\nEndpoint = y\nMTU = 5\n[Peer]\n", file: "f")
    #expect(parsed.diagnostics.map(\.line) == [2, 3, 4, 5, 6, 7])
    #expect(
      parsed.diagnostics.first?.description
        == "f:2: error: MTU: 'x' is no MTU; write a number from 68 to 65535, or leave the line out")
  }

  @Test func aHostileFileGetsABoundedAnswer() {
    let parsed = WireGuardConfiguration.parse(String(repeating: "x\n", count: 100_000), file: "f")
    #expect(parsed.diagnostics.count == DiagnosticList.limit + 1)
    #expect(parsed.diagnostics.last?.reason == "99900 more findings are left out")
    let long = WireGuardConfiguration.parse(
      "[Interface]\nPostUp = " + String(repeating: "x", count: WireGuardConfigurationLexer.lineLimit), file: "f")
    #expect(long.diagnostics.map(\.line) == [2])
    #expect(long.configuration == nil)
  }

  /// Wherever a key ends up in a file, no diagnostic repeats it.
  @Test func diagnosticsNeverHoldAKey() {
    var generator = SeededGenerator(seed: 7)
    let names = WireGuardConfigurationKey.allCases.map(\.rawValue) + ["PrivatKey", "Jc", "", "[Interface]", "[", "x y"]
    for _ in 0..<3000 {
      var text = generator.chance(2) ? "[Interface]\n" : "[Peer]\n"
      for _ in 0..<generator.below(6) {
        let key = [TestKeys.aPrivate, TestKeys.shared].randomElement(using: &generator) ?? ""
        let cut = generator.chance(2) ? key : String(key.dropLast(generator.below(3)))
        let separator = ["=", " = ", " ", "", ":"].randomElement(using: &generator) ?? ""
        text += (names.randomElement(using: &generator) ?? "") + separator + cut
        text += ["\n", "\n", " x\n", "]\n", ",\n"].randomElement(using: &generator) ?? ""
      }
      for diagnostic in WireGuardConfiguration.parse(text).diagnostics {
        let shown = "\(diagnostic)".lowercased()
        for secret in [TestKeys.aPrivate, TestKeys.shared] {
          #expect(!shown.contains(secret.prefix(12).lowercased()), "\(text)\n\(diagnostic)")
        }
      }
    }
  }

  @Test func keysInTextAreHidden() {
    #expect(Redaction.hidingKeys(in: "echo \(TestKeys.aPrivate)|wg") == "echo (hidden)|wg")
    #expect(Redaction.hidingKeys(in: String(repeating: "aF", count: 32)) == "(hidden)")
    #expect(Redaction.hidingKeys(in: "/usr/local/bin/a.sh käse =") == "/usr/local/bin/a.sh käse =")
  }
}
