/// Exchanges keys with a WireGuard server, in a way of one's own.
public protocol PacketTunnelWireguardAuthenticator: Sendable {
  /// Returns `config` with the server's key, a fresh private key, the address inside the tunnel, and resolvers if it
  /// learnt of any. Called once an attempt, right before the endpoint is connected. Whatever it throws skips that endpoint.
  func authenticate(config: WireguardEndpointConfiguration) async throws -> WireguardEndpointConfiguration
}

extension PacketTunnelWireguardAuthenticator {
  /// Returns `config` ready to be connected. Throws what `authenticate` throws, and `PacketTunnelError.emptyCredentials`
  /// when it left out a key or the address.
  public func authorize(_ config: KapeWireGuardConfig, logger: any PacketTunnelLogger) async throws
    -> KapeWireGuardConfig
  {
    logger.debug("WireGuard: exchanging keys for \(config.endpointConfiguration.certDn)")
    let endpoint: WireguardEndpointConfiguration
    do {
      endpoint = try await authenticate(config: config.endpointConfiguration)
    } catch {
      logger.debug("WireGuard: no keys from \(config.endpointConfiguration.certDn): \(loggable(error))")
      throw error
    }
    guard endpoint.isAuthorized else {
      logger.debug("WireGuard: the authenticator left out a key or the address")
      throw PacketTunnelError.emptyCredentials
    }
    var authorized = config
    authorized.endpointConfiguration = endpoint
    let wanted = config.endpointConfiguration.dnsServers
    if !wanted.isEmpty { authorized.endpointConfiguration.dnsServers = wanted }
    // The server may have told how it wants to be spoken to.
    let told = endpoint.obfuscation
    if told != config.endpointConfiguration.obfuscation { authorized.obfuscation = told }
    logger.debug("WireGuard: has keys for \(config.endpointConfiguration.certDn)")
    return authorized
  }
}
