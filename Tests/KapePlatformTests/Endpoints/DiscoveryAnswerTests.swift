import Foundation
import KapeProtocols
import KapeTestSupport
import Testing

@testable import KapePlatform

@Suite("What discovery answers") struct DiscoveryAnswerTests {
  private static let pem = #""-----BEGIN CERTIFICATE-----\nQQ==\n-----END CERTIFICATE-----\n""#
  private static let wireGuard = """
    {"kind": "wireguard", "ip": "192.0.2.1", "port": 1337, "auth_ip": "2001:db8::1", "auth_port": 8443,
     "cert_dn": "server.test", "obfuscation": "none"}
    """
  private static let openVPN = """
    {"kind": "openvpn", "ip": "192.0.2.1", "port": 1194, "transport": "udp", "cert_dn": "server.test", "mtu": 1500,
     "profile": "cipher AES-256-GCM", "ca_certificate": \(pem), "tls_auth_key": null, "xor_value": 7,
     "obfuscation": "xor"}
    """
  private static let lightway = """
    {"kind": "lightway", "ip": "192.0.2.1", "port": 443, "transport": "tcp", "mtu": 1400, "cert_dn": "server.test",
     "ca_certificate": \(pem), "obfuscation": "none"}
    """
  private static let proxy = """
    {"kind": "proxy", "ip": "192.0.2.9", "port": 8443, "tls": true, "cert_dn": "proxy.test", "authentication": "token"}
    """

  private func answer(_ entries: String...) throws(DiscoveryError) -> DiscoveryAnswer {
    let list = entries.joined(separator: ",")
    return try DiscoveryAnswer(Data(#"{"location_id": "fr", "endpoints": [\#(list)], "max_age": 600}"#.utf8))
  }

  @Test("§5.5: each kind, with every field of it, in the order of the answer")
  func kinds() throws {
    let answer = try answer(Self.wireGuard, Self.openVPN, Self.lightway, Self.proxy)
    #expect(answer.locationId == "fr")
    #expect(answer.maxAgeSeconds == 600)
    #expect(answer.refused == [])
    let one = try address("192.0.2.1")
    #expect(
      answer.endpoints == [
        .wireGuard(
          .init(
            address: one, port: 1337, authAddress: try address("2001:db8::1"), authPort: 8443, certDn: "server.test",
            obfuscation: "none")),
        .openVPN(
          .init(
            address: one, port: 1194, transport: .udp, certDn: "server.test", mtu: 1500, profile: "cipher AES-256-GCM",
            caCertificate: somePEM, tlsAuthKey: nil, xorValue: 7, obfuscation: "xor")),
        .lightway(
          .init(
            address: one, port: 443, transport: .tcp, mtu: 1400, certDn: "server.test", caCertificate: somePEM,
            obfuscation: "none")),
        .proxy(
          .init(
            address: try address("192.0.2.9"), port: 8443, tls: true, certDn: "proxy.test", authentication: .token)),
      ])
  }

  @Test("What was decoded is the same again after it was written")
  func roundTrip() throws {
    let endpoints = try answer(Self.wireGuard, Self.openVPN, Self.lightway, Self.proxy).endpoints
    let data = try JSONEncoder().encode(endpoints)
    #expect(try JSONDecoder().decode([DiscoveredEndpoint].self, from: data) == endpoints)
  }

  @Test(
    "An entry that is not as described is left out, and said with its place and without its value",
    arguments: [
      ("\"port\": 1337", "\"port\": 0", "endpoints[1].port: not within 1 to 65535"),
      ("\"port\": 1337", "\"port\": 70000", "endpoints[1].port: not within 1 to 65535"),
      ("\"port\": 1337", "\"port\": -1", "endpoints[1].port: not within 1 to 65535"),
      ("\"port\": 1337", "\"port\": \"1337\"", "endpoints[1].port: no Int"),
      ("\"port\": 1337, ", "", "endpoints[1]: port is missing"),
      ("192.0.2.1", "server.example.com", "endpoints[1].ip: not an IP address"),
      ("192.0.2.1", "192.0.2.1 ", "endpoints[1].ip: not an IP address"),
      ("192.0.2.1", "0.0.0.0", "endpoints[1].ip: not an IP address"),
      ("2001:db8::1", "fe80::1%eth0", "endpoints[1].auth_ip: not an IP address"),
      ("8443", "0", "endpoints[1].auth_port: not within 1 to 65535"),
      ("\"server.test\"", "\"\"", "endpoints[1].cert_dn: empty, too long or with control characters"),
      ("\"server.test\"", "\"a\\nb\"", "endpoints[1].cert_dn: empty, too long or with control characters"),
      ("\"server.test\"", "null", "endpoints[1].cert_dn: no String"),
      ("\"wireguard\"", "\"carrier-pigeon\"", "endpoints[1].kind: not as described"),
    ])
  func refusedEntry(_ text: String, _ replacement: String, _ said: String) throws {
    #expect(Self.wireGuard.contains(text))
    let answer = try answer(Self.lightway, Self.wireGuard.replacingOccurrences(of: text, with: replacement))
    #expect(answer.endpoints.map(\.discoveryProtocol) == [.lightway])
    #expect(answer.refused == [said])
  }

  @Test(
    "Of the other kinds too",
    arguments: [
      (openVPN, "\"transport\": \"udp\"", "\"transport\": \"sctp\"", "transport"),
      (openVPN, "\"mtu\": 1500", "\"mtu\": 575", "mtu"), (openVPN, "7", "256", "xor_value"),
      (openVPN, "CERTIFICATE-----\\nQQ", "KEY-----\\nQQ", "ca_certificate"),
      (lightway, "\"mtu\": 1400", "\"mtu\": 0", "mtu"), (lightway, "\"tcp\"", "6", "transport"),
      (proxy, "true", "1", "tls"), (proxy, "\"token\"", "\"magic\"", "authentication"),
    ])
  func refusedOthers(_ entry: String, _ text: String, _ replacement: String, _ field: String) throws {
    #expect(entry.contains(text))
    let answer = try answer(Self.wireGuard, entry.replacingOccurrences(of: text, with: replacement))
    #expect(answer.endpoints.count == 1)
    #expect(answer.refused.count == 1)
    #expect(answer.refused.first?.hasPrefix("endpoints[1].\(field): ") == true, "\(answer.refused)")
  }

  @Test("Nothing left of what was told, or no answer at all, is an error; an empty list is none")
  func unusable() throws {
    #expect(throws: DiscoveryError.unusable("endpoints[0].port: not within 1 to 65535")) {
      try answer(Self.wireGuard.replacingOccurrences(of: "1337", with: "0"))
    }
    for text in ["", "[]", "null", "{}", #"{"location_id": "fr", "endpoints": 3}"#, "{\"location_id\""] {
      #expect(throws: DiscoveryError.self, "\(text)") { try DiscoveryAnswer(Data(text.utf8)) }
    }
    #expect(try answer().endpoints == [])
    let ageless = try DiscoveryAnswer(Data(#"{"location_id": "fr", "endpoints": [], "more": {}}"#.utf8))
    #expect(ageless.maxAgeSeconds == nil)
  }

  @Test("Bytes changed at random never do worse than an error or fewer endpoints")
  func changedBytes() throws {
    let whole = Array(
      #"{"location_id": "fr", "endpoints": [\#(Self.wireGuard),\#(Self.openVPN),\#(Self.lightway),\#(Self.proxy)], "max_age": 9}"#
        .utf8)
    var read = 0
    for seed in 0..<3000 as Range<UInt64> {
      var random = SeededGenerator(seed: seed)
      var bytes = whole
      for _ in 0...random.below(3) { bytes[random.below(bytes.count)] = UInt8(random.below(256)) }
      guard let answer = try? DiscoveryAnswer(Data(bytes)) else { continue }
      read += 1
      #expect(answer.endpoints.count + answer.refused.count == 4)
      #expect(answer.endpoints.allSatisfy { $0.port > 0 && !$0.address.isUnspecified })
    }
    #expect(read > 100)
  }
}
