import KapeProtocols
import Testing

@testable import KapePlatform

@Suite("Configurations of endpoints") struct EndpointConfigurationTests {
  private let commons = ConfigurationCommons(
    appGroupIdentifier: "group.example", dnsServers: [.v4(ipV4: "10.0.0.53")], dedicatedIPToken: nil)

  private func only(_ endpoints: [DiscoveredEndpoint], usesProxy: Bool = false) throws -> EndpointCandidate {
    let candidates = EndpointOrder(
      supported: [
        .init(.lightway), .init(.openvpn, obfuscations: ["xor"]), .init(.wireguard, obfuscations: ["none", "amnezia"]),
      ],
      usesProxy: usesProxy
    ).candidates(endpoints)
    #expect(candidates.count == 1)
    return try #require(candidates.first)
  }

  @Test("WireGuard: the endpoint, where keys are exchanged, and the user's resolvers")
  func wireGuard() throws {
    let endpoint = DiscoveredEndpoint.wireGuard(
      .init(
        address: try address("192.0.2.1"), port: 1337, authAddress: try address("2001:db8::2"), authPort: 8443,
        certDn: "server.test", obfuscation: "none"))
    let configuration = try #require(only([endpoint]).configuration(commons) as? KapeWireGuardConfig)
    var expected = WireguardEndpointConfiguration(
      ip: .v4(ipV4: "192.0.2.1"), port: 1337, authIp: .v6(ipV6: "2001:db8::2"), authPort: 8443, certDn: "server.test")
    expected.dnsServers = [.v4(ipV4: "10.0.0.53")]
    #expect(configuration == KapeWireGuardConfig(endpointConfiguration: expected, host: "192.0.2.1", port: 1337))
    #expect(configuration.mtu == 1280)
    let hidden = try only([try Sample.wireGuard("192.0.2.1", obfuscation: "amnezia")])
    #expect((hidden.configuration(commons) as? KapeWireGuardConfig)?.obfuscation == .unknown)
  }

  @Test("OpenVPN: every field of the endpoint; credentials come later")
  func openVPN() throws {
    let endpoint = DiscoveredEndpoint.openVPN(
      .init(
        address: try address("192.0.2.1"), port: 443, transport: .tcp, certDn: "server.test", mtu: 1420,
        profile: "cipher AES-128-GCM", caCertificate: somePEM, tlsAuthKey: "static key", xorValue: 7,
        obfuscation: "xor"))
    let configuration = try #require(only([endpoint]).configuration(commons) as? OpenVPNConfiguration)
    #expect(
      configuration
        == OpenVPNConfiguration(
          host: "192.0.2.1", port: 443, transport: .tcp, ovpnConfiguration: "cipher AES-128-GCM", xorValue: 7,
          mtu: 1420,
          certDn: "server.test", caCertificate: somePEM, tlsAuthKey: "static key", appGroupIdentifier: "group.example",
          dnsServers: ["10.0.0.53"]))
  }

  @Test("Lightway: the group, its anchor, the proxy with the connection token")
  func lightway() throws {
    let endpoints = [try Sample.lightway("192.0.2.1", .tcp), try Sample.lightway("192.0.2.2", .tcp)]
    let plain = try #require(only(endpoints).configuration(commons) as? LightwayConfiguration)
    #expect(plain.endpoints.map(\.ip) == [.v4(ipV4: "192.0.2.1"), .v4(ipV4: "192.0.2.2")])
    #expect(
      plain.endpoints.first
        == LightwayEndpoint(
          ip: .v4(ipV4: "192.0.2.1"), port: 443, transport: .tcp, mtu: 1500, certDn: "server.test", obfuscation: "none")
    )
    #expect(plain.caCertificate == somePEM)
    #expect(plain.proxy == nil && plain.dedicatedIPToken == nil)
    #expect(plain.dnsServers == [.v4(ipV4: "10.0.0.53")])
    let proxied = try only(endpoints + [try Sample.proxy("192.0.2.9")], usesProxy: true)
    #expect(
      (proxied.configuration(commons) as? LightwayConfiguration)?.proxy
        == LightwayProxy(host: "192.0.2.9", port: 8443, tls: true, authentication: .tokenAuth))
    let open = try only(endpoints + [try Sample.proxy("192.0.2.9", authentication: .none)], usesProxy: true)
    #expect(
      (open.configuration(commons) as? LightwayConfiguration)?.proxy?.authentication
        == LightwayProxy.Authentication.none)
  }

  @Test("A6: the token of a dedicated IP goes with the Lightway configuration")
  func dedicatedIP() throws {
    var commons = commons
    commons.dedicatedIPToken = "token"
    let candidate = try only([try Sample.lightway("192.0.2.1")])
    #expect((candidate.configuration(commons) as? LightwayConfiguration)?.dedicatedIPToken == "token")
  }
}
