import KapeControl
import KapeProtocols
import NetworkExtension
import Testing

@Suite struct SettingsTests {
  private func packetSettings() -> NEPacketTunnelNetworkSettings {
    let settings = NEPacketTunnelNetworkSettings(tunnelRemoteAddress: "192.0.2.1")
    settings.ipv4Settings = NEIPv4Settings(addresses: ["10.77.0.2"], subnetMasks: ["255.255.255.0"])
    settings.ipv4Settings?.includedRoutes = [.default()]
    settings.ipv4Settings?.excludedRoutes = [NEIPv4Route(destinationAddress: "10.9.8.7", subnetMask: "255.255.0.0")]
    settings.ipv6Settings = NEIPv6Settings(addresses: ["fd77::2"], networkPrefixLengths: [64])
    settings.ipv6Settings?.includedRoutes = [
      .default(), NEIPv6Route(destinationAddress: "fd00::", networkPrefixLength: 8),
    ]
    settings.dnsSettings = NEDNSSettings(servers: ["10.77.0.1", "fd77::1"])
    settings.dnsSettings?.searchDomains = ["lan.example"]
    settings.mtu = 1380
    return settings
  }

  @Test func everythingArrives() throws {
    let settings = try packetSettings().tunnelSettings()
    #expect(settings.remoteAddress == "192.0.2.1")
    #expect(settings.addresses.map(\.description) == ["10.77.0.2/24", "fd77::2/64"])
    #expect(settings.includedRoutes.map(\.description) == ["0.0.0.0/0", "::/0", "fd00::/8"])
    #expect(settings.excludedRoutes.map(\.description) == ["10.9.0.0/16"])
    #expect(settings.nameServers.map(\.description) == ["10.77.0.1", "fd77::1"])
    #expect(settings.searchDomains == ["lan.example"])
    #expect(settings.matchDomains == nil)
    #expect(settings.mtu == 1380)
    #expect(settings.proxies == nil)
  }

  @Test func matchDomainsAreForThoseNamesOnlyAndAnEmptyOneIsForAll() throws {
    let settings = packetSettings()
    settings.dnsSettings?.matchDomains = ["corp.example"]
    #expect(try settings.tunnelSettings().matchDomains == ["corp.example"])
    #expect(try settings.tunnelSettings().searchDomains == ["lan.example", "corp.example"])
    settings.dnsSettings?.matchDomainsNoSearch = true
    #expect(try settings.tunnelSettings().searchDomains == ["lan.example"])
    settings.dnsSettings?.matchDomains = ["corp.example", ""]
    #expect(try settings.tunnelSettings().matchDomains == nil)
  }

  @Test func withoutAnMTUTheOverheadDecides() throws {
    let settings = packetSettings()
    settings.mtu = nil
    #expect(try settings.tunnelSettings().mtu == nil)
    settings.tunnelOverheadBytes = 80
    #expect(try settings.tunnelSettings().mtu == 1420)
  }

  @Test func proxiesAreToldWithoutTheirPasswords() throws {
    let settings = packetSettings()
    let proxies = NEProxySettings()
    proxies.httpServer = NEProxyServer(address: "proxy.example", port: 3128)
    proxies.exceptionList = ["lan.example"]
    settings.proxySettings = proxies
    #expect(try settings.tunnelSettings().proxies == nil, "not enabled")
    proxies.httpEnabled = true
    #expect(try settings.tunnelSettings().proxies?.http == .init(host: "proxy.example", port: 3128))
    #expect(try settings.tunnelSettings().proxies?.exceptions == ["lan.example"])
  }

  @Test func aCopyIsOnesOwn() throws {
    let settings = packetSettings()
    let before = try settings.tunnelSettings()
    let copy = try #require(settings.copy() as? NEPacketTunnelNetworkSettings)
    settings.ipv4Settings?.includedRoutes = []
    settings.dnsSettings?.searchDomains = nil
    settings.mtu = 1300
    #expect(try copy.tunnelSettings() == before)
    #expect(try settings.tunnelSettings() != before)
  }

  @Test func badValuesAreNamed() throws {
    try expectFault("ipv4Settings.addresses[0]: '10.77.0'") {
      $0.ipv4Settings = NEIPv4Settings(addresses: ["10.77.0"], subnetMasks: ["255.0.0.0"])
    }
    try expectFault("ipv4Settings.addresses[0]: 'fd77::2'") {
      $0.ipv4Settings = NEIPv4Settings(addresses: ["fd77::2"], subnetMasks: ["255.0.0.0"])
    }
    try expectFault("ipv4Settings.subnetMasks[0]: '255.0.255.0'") {
      $0.ipv4Settings = NEIPv4Settings(addresses: ["10.77.0.2"], subnetMasks: ["255.0.255.0"])
    }
    try expectFault("ipv4Settings.subnetMasks[0]: '24'") {
      $0.ipv4Settings = NEIPv4Settings(addresses: ["10.77.0.2"], subnetMasks: ["24"])
    }
    try expectFault("ipv4Settings.addresses and subnetMasks: '1 and 0'") {
      $0.ipv4Settings = NEIPv4Settings(addresses: ["10.77.0.2"], subnetMasks: [])
    }
    try expectFault("ipv4Settings.includedRoutes[1]: 'x'") {
      $0.ipv4Settings?.includedRoutes = [.default(), NEIPv4Route(destinationAddress: "x", subnetMask: "0.0.0.0")]
    }
    try expectFault("ipv4Settings.excludedRoutes[0]: '1.2'") {
      $0.ipv4Settings?.excludedRoutes = [NEIPv4Route(destinationAddress: "10.0.0.0", subnetMask: "1.2")]
    }
    try expectFault("ipv6Settings.networkPrefixLengths[0]: '129'") {
      $0.ipv6Settings = NEIPv6Settings(addresses: ["fd77::2"], networkPrefixLengths: [129])
    }
    try expectFault("ipv6Settings.includedRoutes[0]: '-1'") {
      $0.ipv6Settings?.includedRoutes = [NEIPv6Route(destinationAddress: "::", networkPrefixLength: -1)]
    }
    try expectFault("dnsSettings.servers[1]: 'dns.example'") {
      $0.dnsSettings = NEDNSSettings(servers: ["10.77.0.1", "dns.example"])
    }
    try expectFault("mtu: '1279' cannot be used; give 1280 to 65535") { $0.mtu = 1279 }
    try expectFault("mtu: '575' cannot be used; give 576 to 65535") {
      $0.ipv6Settings = nil
      $0.mtu = 575
    }
    try expectFault("tunnelOverheadBytes: '-1'") {
      $0.mtu = nil
      $0.tunnelOverheadBytes = -1
    }
    try expectFault("proxySettings.httpsServer.port: '0'") {
      $0.proxySettings = NEProxySettings()
      $0.proxySettings?.httpsEnabled = true
      $0.proxySettings?.httpsServer = NEProxyServer(address: "proxy.example", port: 0)
    }
  }

  private func expectFault(_ place: String, _ spoil: (NEPacketTunnelNetworkSettings) -> Void) throws {
    let settings = packetSettings()
    spoil(settings)
    do {
      _ = try settings.tunnelSettings()
      Issue.record("taken: \(place)")
    } catch let error as NETunnelProviderError {
      #expect(error.code == .networkSettingsInvalid)
      #expect(error.description.contains(place))
    }
  }
}
