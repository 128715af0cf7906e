import KapePlatform
import Testing

@Suite struct VpnConfigurationTests {
  @Test func onlyTheNameMustBeGiven() {
    struct Minimal: VpnConfiguration { let vpnProtocolName = "wireguard" }
    let configuration: any VpnConfiguration = Minimal()
    #expect(configuration.vpnProtocolName == "wireguard")
    #expect(configuration.obfuscationDescription == "none")
    #expect(configuration.cipherDescription == "none")
    #expect(!configuration.isProxied)
  }
}
