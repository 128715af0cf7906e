/// What every configuration of a session has.
package struct ConfigurationCommons: Hashable, Sendable {
  package var appGroupIdentifier: String
  /// Resolvers of the user's own; empty: those of the server.
  package var dnsServers: [IpAddress]
  /// The access token of a dedicated IP, for Lightway. Secret.
  package var dedicatedIPToken: String?

  package init(appGroupIdentifier: String, dnsServers: [IpAddress] = [], dedicatedIPToken: String? = nil) {
    self.appGroupIdentifier = appGroupIdentifier
    self.dnsServers = dnsServers
    self.dedicatedIPToken = dedicatedIPToken
  }
}

extension EndpointCandidate {
  /// The configuration for it, before anybody has authenticated.
  package func configuration(_ commons: ConfigurationCommons) -> any VpnConfiguration {
    switch self {
    case .wireGuard(let endpoint): endpoint.configuration(commons)
    case .openVPN(let endpoint): endpoint.configuration(commons)
    case .lightway(let endpoints, let proxy):
      LightwayConfiguration(
        endpoints: endpoints.map(\.forSession), proxy: proxy?.forSession, dedicatedIPToken: commons.dedicatedIPToken,
        caCertificate: endpoints.first?.caCertificate ?? "", dnsServers: commons.dnsServers)
    }
  }
}

extension DiscoveredEndpoint.WireGuard {
  fileprivate func configuration(_ commons: ConfigurationCommons) -> KapeWireGuardConfig {
    // Its parameters come with the keys.
    let obfuscation: WireguardObfuscation = self.obfuscation == "none" ? .none : .unknown
    var configuration = WireguardEndpointConfiguration(
      ip: IpAddress("\(address)"), port: port, authIp: IpAddress("\(authAddress)"), authPort: authPort, certDn: certDn,
      obfuscation: obfuscation)
    configuration.dnsServers = commons.dnsServers
    return KapeWireGuardConfig(
      endpointConfiguration: configuration, host: "\(address)", port: port, obfuscation: obfuscation)
  }
}

extension DiscoveredEndpoint.OpenVPN {
  fileprivate func configuration(_ commons: ConfigurationCommons) -> OpenVPNConfiguration {
    OpenVPNConfiguration(
      host: "\(address)", port: port, transport: transport, ovpnConfiguration: profile, xorValue: xorValue, mtu: mtu,
      certDn: certDn, caCertificate: caCertificate, tlsAuthKey: tlsAuthKey ?? "",
      appGroupIdentifier: commons.appGroupIdentifier, dnsServers: commons.dnsServers.map(\.description))
  }
}

extension DiscoveredEndpoint.Lightway {
  fileprivate var forSession: LightwayEndpoint {
    LightwayEndpoint(
      ip: IpAddress("\(address)"), port: port, transport: transport, mtu: mtu, certDn: certDn, obfuscation: obfuscation)
  }
}

extension DiscoveredEndpoint.Proxy {
  fileprivate var forSession: LightwayProxy {
    LightwayProxy(
      host: "\(address)", port: port, tls: tls, authentication: authentication == .token ? .tokenAuth : .none)
  }
}
