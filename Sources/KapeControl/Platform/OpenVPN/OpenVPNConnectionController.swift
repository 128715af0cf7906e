/// Connects by OpenVPN, with an engine that `driverFactory` makes: one for each connection.
///
/// An attempt asks for credentials, connects within 10 s, and only then sets the interface up. A connection that the
/// server wants to be made anew is over: the next configuration is tried, as this server may be on its way out.
public final class OpenVPNConnectionController: ConnectionController {
  static let connectDeadline = Duration.seconds(10)

  private let systemTunnel: any SystemTunnel
  private let authenticator: (any PacketTunnelOpenVPNAuthenticator)?
  private let logger: any PacketTunnelLogger
  private let tasks: TaskEnvironment
  private let makeDriver: @Sendable () -> any OpenVPNDriver
  private let lifecycle: DriverLifecycle
  private let reporter = ReporterPlace()

  /// Without an authenticator, the configuration's own name and password are used.
  public convenience init(
    systemTunnel: any SystemTunnel, authenticator: (any PacketTunnelOpenVPNAuthenticator)? = nil,
    logger: any PacketTunnelLogger, driverFactory: @escaping @Sendable () -> any OpenVPNDriver
  ) {
    self.init(
      systemTunnel: systemTunnel, authenticator: authenticator, logger: logger, tasks: TaskEnvironment(),
      driverFactory: driverFactory)
  }

  package init(
    systemTunnel: any SystemTunnel, authenticator: (any PacketTunnelOpenVPNAuthenticator)?,
    logger: any PacketTunnelLogger, tasks: TaskEnvironment, driverFactory: @escaping @Sendable () -> any OpenVPNDriver
  ) {
    self.systemTunnel = systemTunnel
    self.authenticator = authenticator
    self.logger = logger
    self.tasks = tasks
    makeDriver = driverFactory
    lifecycle = DriverLifecycle(tasks)
  }

  public func setAttemptReporter(_ reporter: (any AttemptReporter)?) async { self.reporter.set(reporter) }

  public func connect(_ configuration: OpenVPNConfiguration) async throws {
    try await reporter.attempt(configuration, endpoint: configuration.connectedEndpoint) {
      try await lifecycle.connect { [self] in try await bringUp(configuration) }
    }
  }

  private func bringUp(_ configuration: OpenVPNConfiguration) async throws -> DriverLifecycle.Connection {
    let credentials = try await credentials(for: configuration)
    let driver = makeDriver()
    do {
      logger.debug("OpenVPN: connecting by \(configuration.transport.rawValue)")
      let tunnel = systemTunnel
      let pushed = try await tasks.bounded(Self.connectDeadline) {
        try await driver.connect(configuration, credentials: credentials, systemTunnel: tunnel)
      }
      guard var settings = pushed else { throw PacketTunnelError.connectTimeout }
      if !configuration.dnsServers.isEmpty { settings.dnsServers = configuration.dnsServers.map { IpAddress($0) } }
      if settings.dnsServers.isEmpty, let gateway = settings.gateway { settings.dnsServers = [gateway] }
      try await driver.attach(try await tasks.establish(settings, on: tunnel))
      return DriverLifecycle.Connection(driver: driver, gateway: settings.gateway)
    } catch {
      await driver.stop()
      throw error
    }
  }

  private func credentials(for configuration: OpenVPNConfiguration) async throws -> OpenVPNCredentials {
    guard let authenticator else {
      return OpenVPNCredentials(username: configuration.username, password: configuration.password)
    }
    let credentials: OpenVPNCredentials
    do {
      credentials = try await authenticator.credentials(for: configuration)
    } catch {
      throw PacketTunnelError.ofAuthentication(error)
    }
    guard !credentials.username.isEmpty, !credentials.password.isEmpty else { throw PacketTunnelError.emptyCredentials }
    return credentials
  }

  public func runVPN() async -> PacketTunnelError? { await lifecycle.run() }

  public func stop() async { await lifecycle.stop() }

  public var gateway: IpAddress? { get async { await lifecycle.gateway } }

  public func currentDataUsage() async -> PacketTunnelDataUsage? { await lifecycle.currentDataUsage() }
}

extension OpenVPNConfiguration {
  var connectedEndpoint: PacketTunnelConnectedEndpoint {
    PacketTunnelConnectedEndpoint(host: host, protocolDescription: "openvpn-\(transport.rawValue)")
  }
}
