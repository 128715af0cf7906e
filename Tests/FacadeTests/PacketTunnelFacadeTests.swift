// Imports nothing but what a provider's file imports.
import KapeVPN_PacketTunnel
import Testing

private struct Endpoint: VpnConfiguration { let vpnProtocolName = "wireguard" }
private struct Other: VpnConfiguration { let vpnProtocolName = "openvpn" }

private actor Controller<Configuration: VpnConfiguration>: ConnectionController {
  func setAttemptReporter(_ reporter: (any AttemptReporter)?) {}
  func connect(_ configuration: Configuration) throws {}
  func runVPN() -> PacketTunnelError? { nil }
  func stop() {}
}

private final class Reporter: VpnConnectionAnalytics {
  func sessionDidBegin(_ event: VpnAnalyticsSessionBeginEvent) {}
  func sessionDidEnd(_ event: VpnAnalyticsSessionEndEvent) {}
  func connectionDidBegin(_ event: VpnAnalyticsConnectionBeginEvent) {}
  func connectionDidEnd(_ event: VpnAnalyticsConnectionEndEvent) {}
  func attemptDidBegin(_ event: VpnAnalyticsAttemptBeginEvent) {}
  func attemptDidEnd(_ event: VpnAnalyticsAttemptEndEvent) {}
}

private struct OneByOne: VpnConfigurationGenerator {
  func nextConfiguration() async throws -> (any VpnConfiguration)? { Endpoint() }
}

private struct Batches: VpnConfigurationGenerator {
  func generateConfigurations() async -> [any VpnConfiguration] { [Endpoint(), Other()] }
}

@Suite struct PacketTunnelFacadeTests {
  @Test("N7: a reporter, controllers and generators of one's own take this module alone")
  func ownTypes() async throws {
    let controllers: [any ConnectionController] = [Controller<Endpoint>(), Controller<Other>()]
    #expect(controllers.count == 2)
    let reporter: any VpnConnectionAnalytics = Reporter()
    reporter.attemptDidEnd(VpnAnalyticsAttemptEndEvent(attemptId: .init(), result: .failed(.connectTimeout)))
    NoopVpnConnectionAnalytics().sessionDidBegin(VpnAnalyticsSessionBeginEvent(sessionId: .init()))
    #expect(try await OneByOne().nextConfiguration()?.vpnProtocolName == "wireguard")
    #expect(try await Batches().nextConfiguration()?.isProxied == false)
    #expect(await OneByOne().generateConfigurations().count == 1)
  }

  @Test func wireGuardComesWithIt() {
    let endpoint = WireguardEndpointConfiguration(
      ip: .v4(ipV4: "192.0.2.1"), port: 1, authIp: .v4(ipV4: "192.0.2.1"), authPort: 2, certDn: "a", obfuscation: .none)
    #expect(KapeWireGuardConfig(endpointConfiguration: endpoint, host: "192.0.2.1", port: 1).mtu == 1280)
  }
}
