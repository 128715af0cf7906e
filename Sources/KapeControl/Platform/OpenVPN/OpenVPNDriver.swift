/// One OpenVPN connection.
public protocol OpenVPNDriver: PacketTunnelDriver {
  /// Returns once keys are there and the server has pushed its settings, which it gives: addresses, routes, resolvers
  /// (which may be none) and MTU. Sockets come from `systemTunnel`. Throws a `PacketTunnelError`.
  func connect(
    _ configuration: OpenVPNConfiguration, credentials: OpenVPNCredentials, systemTunnel: any SystemTunnel
  ) async throws -> PacketTunnelInterfaceSettings
}
