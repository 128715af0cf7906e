import KapeCrypto
import Testing

@testable import KapeProtocols

private func parse(_ text: String) -> ParsedConfiguration<WireGuardConfiguration> {
  WireGuardConfiguration.parse(text, file: "t.conf")
}

private func printed(_ configuration: WireGuardConfiguration, _ format: WireGuardConfiguration.Format = .wgQuick)
  -> String
{
  var buffer = SecretBuffer()
  configuration.write(format, to: &buffer)
  return buffer.text()
}

@Suite struct WireGuardConfigurationTests {
  @Test func listSeparatorsWithoutASpace() throws {
    let configuration = try parse(
      """
      [Interface]
      PrivateKey = \(TestKeys.aPrivate)
      Address = 10.77.0.2/32,fd77::2/128

      [Peer]
      PublicKey = \(TestKeys.bPublic)
      Endpoint = vpn.example.net:51820
      AllowedIPs = 0.0.0.0/0,::/0
      """
    ).get()
    #expect(configuration.interface.addresses.map(\.description) == ["10.77.0.2/32", "fd77::2/128"])
    #expect(configuration.peers[0].allowedIPs.map(\.description) == ["0.0.0.0/0", "::/0"])
    #expect(configuration.isFullTunnel(.ipv4))
    #expect(configuration.isFullTunnel(.ipv6))
  }

  @Test func anAllowedListThatIsPresentButEmpty() throws {
    let parsed = parse(
      """
      [Interface]
      PrivateKey = \(TestKeys.aPrivate)
      Address = 10.77.0.2/32

      [Peer]
      PublicKey = \(TestKeys.bPublic)
      Endpoint = 192.0.2.10:51820
      AllowedIPs =
      PersistentKeepalive = 25
      """)
    let configuration = try parsed.get()
    #expect(configuration.peers[0].allowedIPs == [])
    #expect(configuration.peers[0].persistentKeepalive == 25)
    #expect(!configuration.isFullTunnel(.ipv4))
    #expect(parsed.diagnostics.map(\.severity) == [.warning])
    #expect(parsed.diagnostics.first?.line == 8)
    #expect(parsed.diagnostics.first?.key == "AllowedIPs")
    #expect(!printed(configuration).contains("AllowedIPs"))
  }

  @Test func aBracketedIPv6EndpointSurvivesARoundTrip() throws {
    func peer(_ endpoint: String) throws -> WireGuardConfiguration.Peer {
      let text = """
        [Interface]
        PrivateKey = \(TestKeys.aPrivate)
        Address = fd77::2/128
        DNS = fd77::1
        [Peer]
        PublicKey = \(TestKeys.bPublic)
        Endpoint = \(endpoint)
        AllowedIPs = ::/0
        """
      let configuration = try parse(text).get()
      #expect(try parse(printed(configuration)).get() == configuration)
      #expect(printed(configuration).contains("Endpoint = \(endpoint)\n"))
      return configuration.peers[0]
    }
    let plain = try peer("[2001:db8:40::9]:51820")
    #expect(plain.endpoint?.socketAddress() == SocketAddress(try #require(IPAddress("2001:db8:40::9")), port: 51820))
    let scoped = try peer("[fe80::1%eth0]:51820")
    #expect(
      scoped.endpoint?.socketAddress { $0 == "eth0" ? 3 : nil }
        == SocketAddress(try #require(IPAddress("fe80::1")), port: 51820, scope: 3))
    #expect(scoped.endpoint?.socketAddress { _ in nil } == nil)
  }

  @Test func oddSpellingsGiveTheTidyModel() throws {
    let odd =
      "[interface]\nprivatekey=\(TestKeys.aPrivate)\nADDRESS=10.77.0.2/32\ndns=10.77.0.1\nmtu=1380\n[PEER]\n"
      + "publickey=\(TestKeys.bPublic)\n\tallowedips\t=\t10.77.0.0/16\npersistentkeepalive=off\nendpoint=VPN.Example.NET:51820"
    let tidy = """
      [Interface]
      PrivateKey = \(TestKeys.aPrivate)
      Address = 10.77.0.2/32
      DNS = 10.77.0.1
      MTU = 1380

      [Peer]
      PublicKey = \(TestKeys.bPublic)
      AllowedIPs = 10.77.0.0/16
      Endpoint = vpn.example.net:51820

      """
    let configuration = try parse(odd).get()
    #expect(try parse(tidy).get() == configuration)
    #expect(printed(configuration) == tidy)
    #expect(configuration.interface.mtu == 1380)
    #expect(configuration.peers[0].persistentKeepalive == 0)
    #expect(configuration.interface.privateKey == PrivateKey(base64: TestKeys.aPrivate))
    for noise in [
      "\u{FEFF}" + odd, odd.replacing("\n", with: "\r\n"), odd.replacing("\n", with: " # c = d\n\n#[x]\n\t\n"),
    ] {
      #expect(try parse(noise).get() == configuration)
      #expect(parse(noise).diagnostics == [])
    }
  }

  @Test func everyKeyOfBothPrograms() throws {
    let configuration = try parse(
      """
      # comment
      [Interface]
      Address = 10.0.0.1/24, fd00::1/64
      Address = 10.0.1.1 10.0.2.1/255.255.255.0
      ListenPort = 51820
      PrivateKey = \(TestKeys.aPrivate)
      FwMark = 0xca6c
      DNS = 10.0.0.53, fd00::53 example.org,corp.example
      DNS = fe80::53%wlan0
      MTU = 0x54c
      Table = vpn
      PreUp = echo 1; a=b
      PreUp = echo 2
      PostUp = echo up %i
      PreDown = echo down
      PostDown = iptables -D FORWARD -i %i -j ACCEPT
      SaveConfig = TRUE
      [Peer]
      PublicKey = \(TestKeys.bPublic)
      PresharedKey = \(TestKeys.shared)
      AllowedIPs = 10.0.0.0/24, 192.168.7.9
      AllowedIPs = fd00::/64
      Endpoint = 192.0.2.1:domain
      PersistentKeepalive = 25
      [Peer]
      PublicKey = \(TestKeys.cPublic)
      PresharedKey = AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=
      """
    ).get()
    let interface = configuration.interface
    #expect(interface.addresses.map(\.description) == ["10.0.0.1/24", "fd00::1/64", "10.0.1.1/32", "10.0.2.1/24"])
    #expect(interface.listenPort == 51820)
    #expect(interface.firewallMark == 0xCA6C)
    #expect(interface.dnsServers.map(\.description) == ["10.0.0.53", "fd00::53", "fe80::53%wlan0"])
    #expect(interface.dnsSearchDomains == ["example.org", "corp.example"])
    #expect(interface.mtu == 1356)
    #expect(interface.table == .name("vpn"))
    #expect(interface.preUp == ["echo 1; a=b", "echo 2"])
    #expect(interface.postUp == ["echo up %i"])
    #expect(interface.preDown == ["echo down"])
    #expect(interface.postDown == ["iptables -D FORWARD -i %i -j ACCEPT"])
    #expect(interface.saveConfig)
    #expect(configuration.peers.count == 2)
    #expect(configuration.peers[0].presharedKey == PresharedKey(base64: TestKeys.shared))
    #expect(configuration.peers[0].allowedIPs.map(\.description) == ["10.0.0.0/24", "192.168.7.9/32", "fd00::/64"])
    #expect(configuration.peers[0].endpoint?.port == 53)
    #expect(configuration.peers[1].presharedKey == nil)
    #expect(try parse(printed(configuration)).get() == configuration)
    #expect(printed(try parse(printed(configuration)).get()) == printed(configuration))
    for word in ["Address", "DNS", "MTU", "Table", "PreUp", "PostUp", "PreDown", "PostDown", "SaveConfig"] {
      #expect(!printed(configuration, .wg).contains(word))
    }
  }

  @Test(
    arguments: [
      ("off", WireGuardConfiguration.RoutingTable.off), ("auto", .automatic), ("123", .number(123)),
      ("0x10", .number(16)),
      ("4294967295", .number(.max)), ("main", .name("main")), ("", .automatic),
    ])
  func tables(_ text: String, _ table: WireGuardConfiguration.RoutingTable) throws {
    #expect(try parse("[Interface]\nTable = \(text)").get().interface.table == table)
  }

  @Test func sectionsOfOnePeerAreMergedAsADeviceDoes() throws {
    let parsed = parse(
      """
      [Interface]
      PrivateKey = \(TestKeys.aPrivate)
      [Peer]
      PublicKey = \(TestKeys.bPublic)
      AllowedIPs = 10.0.0.0/8
      PersistentKeepalive = 5
      [Peer]
      PublicKey = \(TestKeys.cPublic)
      AllowedIPs = 10.1.0.0/16, 10.2.0.0/16
      [Peer]
      PublicKey = \(TestKeys.bPublic)
      AllowedIPs = 10.1.0.0/16
      Endpoint = 192.0.2.1:1
      """)
    let configuration = try parsed.get()
    #expect(configuration.peers.map(\.publicKey.base64) == [TestKeys.bPublic, TestKeys.cPublic])
    #expect(configuration.peers[0].persistentKeepalive == 5)
    #expect(configuration.peers[0].endpoint?.description == "192.0.2.1:1")
    #expect(configuration.peers[0].allowedIPs.map(\.description) == ["10.1.0.0/16"])
    #expect(configuration.peers[1].allowedIPs.map(\.description) == ["10.2.0.0/16"])
    #expect(parsed.diagnostics.compactMap(\.line) == [10, 12])
    #expect(parsed.diagnostics.allSatisfy { $0.severity == .warning })
  }

  @Test func plusAndMinusBeforeAllowedIPs() throws {
    let parsed = parse(
      """
      [Interface]
      PrivateKey = \(TestKeys.aPrivate)
      [Peer]
      PublicKey = \(TestKeys.bPublic)
      AllowedIPs = +10.0.0.0/8, 10.1.0.0/16, 10.1.0.0/16
      AllowedIPs = -10.0.0.0/8, -10.9.0.0/16
      """)
    #expect(try parsed.get().peers[0].allowedIPs.map(\.description) == ["10.1.0.0/16"])
    #expect(parsed.diagnostics.map(\.line) == [6])
  }

  @Test func ofRepeatedKeysTheLastCounts() throws {
    let parsed = parse(
      """
      [Interface]
      PrivateKey = \(TestKeys.aPrivate)
      ListenPort = 1
      ListenPort = 2
      MTU = 1400
      MTU =
      [Interface]
      PrivateKey = \(TestKeys.bPrivate)
      """)
    let interface = try parsed.get().interface
    #expect(interface.listenPort == 2)
    #expect(interface.mtu == nil)
    #expect(interface.privateKey == PrivateKey(base64: TestKeys.bPrivate))
    #expect(Set(parsed.diagnostics.compactMap(\.line)) == [4, 6, 8])
  }

  @Test func theChangeSetsEverythingAsSetconfDoes() throws {
    let configuration = try parse(
      "[Interface]\nPrivateKey = \(TestKeys.aPrivate)\n[Peer]\nPublicKey = \(TestKeys.bPublic)\nEndpoint = a.example:5"
    ).get()
    let change = configuration.change { _ in SocketAddress(IPAddress(ipv4: 192, 0, 2, 1), port: 5) }
    #expect(change.replacePeers)
    #expect(change.listenPort == 0)
    #expect(change.firewallMark == 0)
    #expect(change.peers[0].presharedKey?.isZero == true)
    #expect(change.peers[0].persistentKeepalive == 0)
    #expect(change.peers[0].replaceAllowedIPs)
    #expect(change.peers[0].endpoint?.description == "192.0.2.1:5")
    #expect(configuration.change().peers[0].endpoint == nil)
    #expect(try parse("").get().change().privateKey?.isZero == true)
  }
}
