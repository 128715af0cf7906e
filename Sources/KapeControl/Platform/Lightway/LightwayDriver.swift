/// One Lightway connection.
public protocol LightwayDriver: PacketTunnelDriver {
  /// Returns once the connection is online, with the settings that the server gave. Sockets come from `systemTunnel`;
  /// a proxy of the configuration is gone through. Throws a `PacketTunnelError`.
  func connect(
    _ endpoint: LightwayEndpoint, of configuration: LightwayConfiguration, credentials: LightwayCredentials,
    systemTunnel: any SystemTunnel
  ) async throws -> PacketTunnelInterfaceSettings
}
