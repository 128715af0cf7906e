import KapeProtocols
import KapeTestSupport
import Testing

@testable import KapePlatform

@Suite("Addresses that a network reaches") struct UnderlayPathTests {
  private func prefix(_ text: String) throws -> NAT64Prefix {
    let prefix = try #require(IPPrefix(text))
    return try #require(NAT64Prefix(prefix))
  }

  @Test(
    "RFC 6052 section 2.4: the address within a prefix of each length",
    arguments: [
      ("2001:db8::/32", "2001:db8:c000:221::"), ("2001:db8:100::/40", "2001:db8:1c0:2:21::"),
      ("2001:db8:122::/48", "2001:db8:122:c000:2:2100::"), ("2001:db8:122:300::/56", "2001:db8:122:3c0:0:221::"),
      ("2001:db8:122:344::/64", "2001:db8:122:344:c0:2:2100::"),
      ("2001:db8:122:344::/96", "2001:db8:122:344::192.0.2.33"), ("64:ff9b::/96", "64:ff9b::192.0.2.33"),
    ])
  func synthesized(_ text: String, _ result: String) throws {
    #expect(try prefix(text).synthesized(try address("192.0.2.33")) == (try address(result)))
  }

  @Test(
    "RFC 7050 section 3: the prefix is found in the answers for ipv4only.arpa",
    arguments: [
      "2001:db8::/32", "2001:db8:100::/40", "2001:db8:122::/48", "2001:db8:122:300::/56", "2001:db8:122:344::/64",
      "2001:db8:122:344::/96", "64:ff9b::/96",
    ])
  func found(_ text: String) throws {
    let prefix = try prefix(text)
    for known in ["192.0.0.170", "192.0.0.171"] {
      let answer = try #require(prefix.synthesized(address(known)))
      #expect(NAT64Prefix(answers: [try address("192.0.0.170"), answer]) == prefix)
    }
  }

  @Test("Answers without the known addresses, or none, are no NAT64")
  func notFound() throws {
    #expect(NAT64Prefix(answers: []) == nil)
    #expect(NAT64Prefix(answers: [try address("192.0.0.170")]) == nil)
    #expect(NAT64Prefix(answers: [try address("2001:db8::1"), try address("64:ff9b::192.0.0.172")]) == nil)
    #expect(NAT64Prefix(try #require(IPPrefix("2001:db8::/33"))) == nil)
    #expect(NAT64Prefix(try #require(IPPrefix("192.0.2.0/24"))) == nil)
  }

  @Test("RFC 6052 section 3.1: a private address has no place behind the well-known prefix, IPv6 behind none")
  func notSynthesized() throws {
    #expect(try prefix("64:ff9b::/96").synthesized(try address("10.1.2.3")) == nil)
    #expect(try prefix("2001:db8:1::/96").synthesized(try address("10.1.2.3")) != nil)
    #expect(try prefix("64:ff9b::/96").synthesized(try address("2001:db8::1")) == nil)
  }

  @Test("nat64_roundtrip: an IPv4 endpoint works behind NAT64, and again as it is where there is IPv4")
  func roundTrip() throws {
    let endpoint = try Sample.wireGuard("192.0.2.33")
    let candidate = try #require(
      EndpointOrder(supported: .init(EndpointOrder.Support.all)).candidates([endpoint]).first)
    let mobile = UnderlayPath(hasIPv4: false, hasIPv6: true, nat64: try prefix("64:ff9b::/96"))
    #expect(mobile.candidate(candidate)?.brief == "wireguard 64:ff9b::c000:221")
    guard case .wireGuard(let there) = mobile.candidate(candidate) else {
      Issue.record("another kind")
      return
    }
    #expect(there.authAddress == (try address("64:ff9b::192.0.2.33")))
    // Not kept across paths: the candidate itself is as it was.
    let home = UnderlayPath(hasIPv4: true, hasIPv6: true, nat64: nil)
    #expect(home.candidate(candidate) == candidate)
    #expect(UnderlayPath.unknown.candidate(candidate) == candidate)
  }

  @Test("What cannot be reached is no candidate: IPv6 without IPv6, IPv4 without IPv4 and NAT64")
  func unreachable() throws {
    let order = EndpointOrder(supported: EndpointOrder.Support.all)
    let endpoints = [
      try Sample.wireGuard("192.0.2.1"), try Sample.wireGuard("2001:db8::1"), try Sample.openVPN("192.0.2.1", .udp),
      try Sample.openVPN("2001:db8::1", .udp), try Sample.lightway("192.0.2.1"), try Sample.lightway("2001:db8::1"),
    ]
    func brief(_ path: UnderlayPath) -> [String] {
      order.candidates(endpoints).compactMap { path.candidate($0)?.brief }
    }
    #expect(
      brief(UnderlayPath(hasIPv4: true, hasIPv6: false))
        == ["wireguard 192.0.2.1", "openvpn-udp 192.0.2.1", "lightway-udp 192.0.2.1"])
    #expect(
      brief(UnderlayPath(hasIPv4: false, hasIPv6: true))
        == ["wireguard 2001:db8::1", "openvpn-udp 2001:db8::1", "lightway-udp 2001:db8::1"])
    #expect(brief(UnderlayPath(hasIPv4: false, hasIPv6: false)) == [])
    let nat64 = UnderlayPath(hasIPv4: false, hasIPv6: true, nat64: try prefix("64:ff9b::/96"))
    #expect(brief(nat64).last == "lightway-udp 64:ff9b::c000:201+2001:db8::1")
    #expect(
      UnderlayPath(hasIPv4: false, hasIPv6: false, nat64: try prefix("64:ff9b::/96")).address(try address("192.0.2.1"))
        == nil)
  }

  @Test("Through a proxy, the proxy's address is the one that has to be reached")
  func proxied() throws {
    let order = EndpointOrder(supported: EndpointOrder.Support.all, usesProxy: true)
    let endpoints = [
      try Sample.lightway("192.0.2.1", .tcp), try Sample.proxy("2001:db8::9"), try Sample.proxy("192.0.2.9"),
    ]
    let path = UnderlayPath(hasIPv4: false, hasIPv6: true)
    #expect(
      order.candidates(endpoints).compactMap { path.candidate($0)?.brief } == ["lightway-tcp 192.0.2.1 by 2001:db8::9"])
  }
}
