import Foundation
import Testing

@testable import KapePlatform

@Suite("What a dedicated IP's token stands for") struct DedicatedIPTests {
  private static let pem = #""-----BEGIN CERTIFICATE-----\nQQ==\n-----END CERTIFICATE-----\n""#
  private static let whole = """
    {"ip": "192.0.2.77", "location_id": "fr", "expires_at": "2026-01-02T03:04:05Z", "access_token": "a.b.c",
     "endpoints": [{"kind": "lightway", "ip": "192.0.2.77", "port": 443, "transport": "udp", "mtu": 1500,
       "cert_dn": "server.test", "ca_certificate": \(pem), "obfuscation": "none"}]}
    """

  @Test("every field; a description has no token in it")
  func fields() throws {
    let dedicated = try DedicatedIP(Data(Self.whole.utf8))
    #expect(dedicated.locationId == "fr" && dedicated.accessToken == "a.b.c")
    #expect(dedicated.expiresAt == Date(timeIntervalSince1970: 1_767_323_045))
    #expect(dedicated.endpoints == [try Sample.lightway("192.0.2.77")])
    for text in ["\(dedicated)", String(reflecting: dedicated), "\([dedicated])"] { #expect(!text.contains("a.b.c")) }
    var dumped = ""
    dump(dedicated, to: &dumped)
    #expect(!dumped.contains("a.b.c"))
    let fraction = Self.whole.replacingOccurrences(of: "05Z", with: "05.5Z")
    #expect(try DedicatedIP(Data(fraction.utf8)).expiresAt == Date(timeIntervalSince1970: 1_767_323_045.5))
  }

  @Test(
    "what is not as described is refused, with its place",
    arguments: [
      ("\"a.b.c\"", "\"\"", ".access_token: empty"), ("\"a.b.c\"", "7", ".access_token: no String"),
      ("2026-01-02T03:04:05Z", "tomorrow", ".expires_at: no time"),
      ("\"lightway\"", "\"wireguard\"", ".endpoints[0]: no Lightway endpoint"),
      ("443", "0", ".endpoints[0]: no Lightway endpoint"),
      ("\"location_id\": \"fr\", ", "", ": location_id is missing"),
    ])
  func refused(_ text: String, _ replacement: String, _ said: String) {
    #expect(Self.whole.contains(text))
    #expect(throws: DiscoveryError.unusable(said)) {
      try DedicatedIP(Data(Self.whole.replacingOccurrences(of: text, with: replacement).utf8))
    }
  }
}
