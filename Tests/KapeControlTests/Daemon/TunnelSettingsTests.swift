import KapeProtocols
import Testing

@testable import KapeControl

@Suite struct TunnelSettingsTests {
  private func settings(_ text: String) throws -> TunnelSettings {
    try TunnelSettings(try JSONReader.read(Array(text.utf8)))
  }

  @Test func settingsReadBack() throws {
    let text = """
      {"addresses":["10.77.0.2/24","fd77::2/64"],"included":["0.0.0.0/0"],"excluded":["10.0.0.0/8"],
      "servers":["10.77.0.1","fe80::1%kape0"],"search":["lan.example"],"match":["corp.example"],"mtu":1380,
      "proxies":{"http":{"host":"proxy.example","port":3128},"script":"https://proxy.example/pac","exceptions":["x"]},
      "remote":"192.0.2.2"}
      """
    let read = try settings(text)
    #expect(read.addresses.map(\.description) == ["10.77.0.2/24", "fd77::2/64"])
    #expect(read.matchDomains == ["corp.example"])
    #expect(try TunnelSettings(read.json) == read)
    #expect(try TunnelSettings(TunnelSettings().json) == TunnelSettings())
    var empty = TunnelSettings()
    empty.matchDomains = []
    #expect(try TunnelSettings(empty.json) == empty)
  }

  @Test(arguments: [
    (#"{"interface":"eth0"}"#, "settings.interface: there is no such member"),
    (#"{"addresses":"10.0.0.1/8"}"#, "settings.addresses: an array is expected"),
    (#"{"addresses":["10.0.0.1/33"]}"#, "settings.addresses[0]: ADDRESS/LENGTH is expected"),
    (#"{"included":["10.0.0.0/8",7]}"#, "settings.included[1]: ADDRESS/LENGTH is expected"),
    (#"{"servers":["dns.example"]}"#, "settings.servers[0]: an address is expected"),
    (#"{"search":["a\nb"]}"#, "settings.search[0]: a domain name is expected"),
    (#"{"search":["-x.example"]}"#, "settings.search[0]: a domain name is expected"),
    (#"{"match":["a..b"]}"#, "settings.match[0]: a domain name is expected"),
    (#"{"mtu":65536}"#, "settings.mtu: a whole number up to 65535 is expected"),
    (#"{"proxies":{"ftp":{}}}"#, "settings.proxies.ftp: there is no such member"),
  ])
  func whatIsNotUnderstoodIsNamed(_ text: String, _ fault: String) {
    #expect { try settings(text) } throws: { "\($0)" == fault }
  }

  @Test func domainNamesAreWhatTheyCanBe() {
    for name in ["example.com", "a_b.example", "x", "xn--bcher-kva.example", "1.2"] {
      #expect(DomainName.checked(name) == name)
    }
    #expect(DomainName.checked("example.com.") == "example.com")
    for name in [
      "", ".", "..", "a b", "a\tb", "a;b", "-a", "a.-b", "ü.example", "~corp", "a\0", String(repeating: "a", count: 64),
    ] {
      #expect(DomainName.checked(name) == nil, "\(name)")
    }
  }

  // MARK: What nobody may ask for

  private func refusal(_ text: String, taken: [String] = []) throws -> IPCFailure? {
    do {
      try SettingsCheck.check(try settings(text), interface: "kape0", taken: taken.compactMap { IPAddress($0) })
      return nil
    } catch let failure as IPCFailure {
      return failure
    }
  }

  @Test(arguments: [
    #"{"included":["127.0.0.0/8"]}"#, #"{"included":["127.9.9.9/32"]}"#, #"{"included":["::1/128"]}"#,
    #"{"excluded":["127.0.0.0/16"]}"#, #"{"addresses":["127.0.0.2/8"]}"#, #"{"addresses":["::1/128"]}"#,
    #"{"addresses":["0.0.0.0/24"]}"#, #"{"addresses":["0.1.2.3/24"]}"#, #"{"addresses":["255.255.255.255/32"]}"#,
    #"{"addresses":["224.0.0.1/4"]}"#, #"{"addresses":["ff02::1/64"]}"#, #"{"addresses":["::ffff:10.0.0.1/128"]}"#,
    #"{"addresses":["192.0.2.1/32"]}"#, #"{"servers":["fe80::1%eth0"]}"#, #"{"servers":["fe80::1%2"]}"#,
    #"{"servers":["0.0.0.0"]}"#, #"{"servers":["239.0.0.1"]}"#,
  ])
  func itIsRefusedWhoeverAsks(_ text: String) throws {
    #expect(try refusal(text, taken: ["192.0.2.1"])?.code == .refused)
  }

  @Test func whatOnlyCoversLoopbackIsNoHarm() throws {
    #expect(try refusal(#"{"included":["0.0.0.0/0","::/0","0.0.0.0/1","126.0.0.0/7","::/1"]}"#) == nil)
    #expect(try refusal(#"{"addresses":["10.0.0.1/8"],"servers":["fe80::1%kape0","127.0.0.53"]}"#) == nil)
  }

  @Test func mtuIsLargeEnoughForItsFamilies() throws {
    #expect(try refusal(#"{"addresses":["10.0.0.1/8"],"mtu":576}"#) == nil)
    #expect(try refusal(#"{"addresses":["10.0.0.1/8"],"mtu":575}"#)?.code == .invalid)
    #expect(try refusal(#"{"addresses":["fd00::1/8"],"mtu":1280}"#) == nil)
    #expect(try refusal(#"{"addresses":["fd00::1/8"],"mtu":1279}"#)?.code == .invalid)
  }
}
