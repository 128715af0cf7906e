import KapePlatform
import Testing

private struct Silent: PacketTunnelLogger {
  func trace(_ message: @autoclosure () -> String) {}
  func debug(_ message: @autoclosure () -> String) {}
  func info(_ message: @autoclosure () -> String) {}
  func warning(_ message: @autoclosure () -> String) {}
  func error(_ message: @autoclosure () -> String) {}
}

private struct Giving: PacketTunnelWireguardAuthenticator {
  let fill: @Sendable (inout WireguardEndpointConfiguration) throws -> Void
  func authenticate(config: WireguardEndpointConfiguration) async throws -> WireguardEndpointConfiguration {
    var config = config
    try fill(&config)
    return config
  }
}

@Suite struct WireguardAuthorizationTests {
  private let config = KapeWireGuardConfig(
    endpointConfiguration: WireguardEndpointConfiguration(
      ip: .v4(ipV4: "192.0.2.1"), port: 1337, authIp: .v4(ipV4: "192.0.2.1"), authPort: 1337, certDn: "server.test"),
    host: "192.0.2.1", port: 1337)

  @Test("G5: authorize gives the configuration with what the authenticator found out")
  func authorized() async throws {
    let authorized = try await Giving {
      $0.serverPublicKey = "server"
      $0.clientPrivateKey = "secret"
      $0.internalIp = "10.5.6.7"
      $0.obfuscation = .unknown
    }.authorize(config, logger: Silent())
    #expect(authorized.endpointConfiguration.serverPublicKey == "server")
    #expect(authorized.host == config.host)
    #expect(authorized.obfuscation == .unknown)
    #expect(authorized.mtu == 1280)
  }

  @Test("A5: a key or the address left out, or empty, is a failure at once", arguments: [nil, "", "  "])
  func empty(value: String?) async {
    for left: WritableKeyPath<WireguardEndpointConfiguration, String?> & Sendable in [
      \.serverPublicKey, \.clientPrivateKey, \.internalIp,
    ] {
      await #expect(throws: PacketTunnelError.emptyCredentials) {
        try await Giving {
          $0.serverPublicKey = "server"
          $0.clientPrivateKey = "secret"
          $0.internalIp = "10.5.6.7"
          $0[keyPath: left] = value
        }.authorize(config, logger: Silent())
      }
    }
  }

  @Test func whatTheAuthenticatorThrowsComesThrough() async {
    struct Refused: Error {}
    await #expect(throws: Refused.self) {
      try await Giving { _ in throw Refused() }.authorize(config, logger: Silent())
    }
  }

  @Test func noKeyInADescription() {
    var endpoint = config.endpointConfiguration
    endpoint.clientPrivateKey = "SECRET"
    endpoint.presharedKey = "SECRET"
    var dumped = ""
    dump(endpoint, to: &dumped)
    dump(KapeWireGuardConfig(endpointConfiguration: endpoint, host: "192.0.2.1", port: 1), to: &dumped)
    let texts = ["\(endpoint)", String(reflecting: endpoint), "\(Optional(endpoint) as Any)", dumped]
    #expect(texts.allSatisfy { !$0.contains("SECRET") })
  }
}
