import KapeTestSupport
import Testing

@testable import KapeProtocols

private func ip(_ bytes: [UInt8]) -> IPAddress? { IPAddress(bytes: bytes.span.bytes) }

@Suite struct AddressTests {
  @Test(
    arguments: [
      ("0.0.0.0", "0.0.0.0"), ("192.0.2.255", "192.0.2.255"), ("::", "::"), ("2001:DB8::0:1", "2001:db8::1"),
      ("::ffff:192.0.2.1", "::ffff:192.0.2.1"), ("fe80:0:0:0:1:0:0:1", "fe80::1:0:0:1"),
      ("ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ])
  func addressesAreReadAndWrittenAsTheSystemDoes(_ text: String, _ canonical: String) throws {
    let address = try #require(IPAddress(text))
    #expect(address.description == canonical)
    #expect(IPAddress(canonical) == address)
    address.withUnsafeBytes { bytes in #expect(ip(Array(bytes)) == address) }
  }

  @Test(
    arguments: [
      "", "1", "1.2.3", "1.2.3.4.5", "1.2.3.256", "01.2.3.4", "1.2.3.4 ", " 1.2.3.4", "1.2.3.4\0", ":", ":::",
      "1::2::3",
      "12345::", "::g", "1:2:3:4:5:6:7:8:9", "[::1]", "::1%lo", "0x1.2.3.4", String(repeating: ":", count: 5000),
    ])
  func whatIsNoAddressIsRefused(_ text: String) {
    #expect(IPAddress(text) == nil)
  }

  @Test func masksAgreeWithTheBitByBitRule() throws {
    var generator = SeededGenerator(seed: 1)
    for _ in 0..<2000 {
      let family: IPAddress.Family = generator.chance(2) ? .ipv4 : .ipv6
      var bytes = (0..<(family.bitCount / 8)).map { _ in UInt8.random(in: 0...255, using: &generator) }
      let length = generator.below(family.bitCount + 1)
      let address = try #require(ip(bytes))
      for bit in length..<family.bitCount { bytes[bit / 8] &= ~(0x80 >> UInt8(bit % 8)) }
      #expect(address.masked(to: length) == ip(bytes))
      let prefix = try #require(IPPrefix(address, length: length))
      #expect(IPPrefix(prefix.description) == prefix)
    }
  }

  @Test func prefixesAndInterfaceAddresses() throws {
    #expect(IPPrefix("10.1.2.3/8")?.description == "10.0.0.0/8")
    #expect(IPPrefix("10.1.2.3")?.description == "10.1.2.3/32")
    #expect(IPPrefix("2001:db8::1/32")?.description == "2001:db8::/32")
    #expect(IPPrefix("::/0")?.isDefault == true)
    #expect(InterfaceAddress("10.1.2.3/8")?.description == "10.1.2.3/8")
    #expect(InterfaceAddress("10.1.2.3/255.255.240.0")?.prefixLength == 20)
    #expect(InterfaceAddress("10.1.2.3/0.0.0.0")?.prefixLength == 0)
    #expect(InterfaceAddress("10.1.2.3/255.255.255.255")?.prefixLength == 32)
    #expect(InterfaceAddress("fd00::2")?.prefixLength == 128)
    for text in [
      "10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/+8", "10.0.0.0/8/8", "/8", "10.0.0.0/255.0.0.0",
    ] {
      #expect(IPPrefix(text) == nil, "\(text)")
    }
    for text in ["10.0.0.1/255.0.255.0", "10.0.0.1/0.0.0.255", "::1/255.0.0.0", "10.0.0.1/::"] {
      #expect(InterfaceAddress(text) == nil, "\(text)")
    }
  }

  @Test func socketAddresses() {
    func parse(_ text: String) -> SocketAddress? {
      SocketAddress(text: Array(text.utf8).span.bytes) { $0 == "eth0" ? 7 : nil }
    }
    #expect(parse("192.0.2.1:51820")?.description == "192.0.2.1:51820")
    #expect(parse("[2001:db8::1]:1")?.description == "[2001:db8::1]:1")
    #expect(parse("[fe80::1%eth0]:1") == parse("[fe80::1%7]:1"))
    #expect(parse("[fe80::1%eth0]:1")?.scope == 7)
    for text in [
      "", ":", ":1", "[]:1", "[:1", "]:1", "192.0.2.1", "192.0.2.1:", "192.0.2.1:65536", "192.0.2.1:-1",
      "[192.0.2.1]:1",
      "2001:db8::1:1:1:1:1:1:51820", "[fe80::1%eth1]:1", "[fe80::1%]:1", "192.0.2.1%eth0:1", "host:1", "[::1]1:1",
      "[::1]x:1",
    ] {
      #expect(parse(text) == nil, "\(text)")
    }
  }

  @Test func portsMayHaveTheNameOfAService() {
    func parse(_ text: String) -> UInt16? { ServicePort.parse(Array(text.utf8).span.bytes) }
    #expect(parse("0") == 0)
    #expect(parse("65535") == 65_535)
    #expect(parse("00053") == 53)
    #expect(parse("+53") == 53)
    #expect(parse("domain") == 53)
    for text in ["", "65536", "-1", "0x35", "5 3", "no-such-service", String(repeating: "9", count: 100)] {
      #expect(parse(text) == nil, "\(text)")
    }
  }
}
