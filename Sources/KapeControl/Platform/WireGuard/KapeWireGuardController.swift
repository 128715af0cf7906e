/// Connects by WireGuard, with our own engine.
///
/// An attempt exchanges keys (unless the configuration has them already), makes a socket past the tunnel, completes the
/// handshake within 10 s, and only then sets the interface up. A connection is lost when packets that were sent go
/// unanswered, or a later handshake does.
public final class KapeWireGuardController: ConnectionController {
  static let handshakeDeadline = Duration.seconds(10)

  private let systemTunnel: any SystemTunnel
  private let authenticator: any PacketTunnelWireguardAuthenticator
  private let logger: any PacketTunnelLogger
  private let tasks: TaskEnvironment
  private let makeDriver: @Sendable () -> any WireGuardDriver
  private let lifecycle: DriverLifecycle
  private let reporter = ReporterPlace()

  public convenience init(
    systemTunnel: any SystemTunnel, authenticator: any PacketTunnelWireguardAuthenticator,
    logger: any PacketTunnelLogger
  ) {
    let tasks = TaskEnvironment()
    self.init(systemTunnel: systemTunnel, authenticator: authenticator, logger: logger, tasks: tasks) {
      WireGuardEngineDriver(tasks: tasks, logger: logger)
    }
  }

  package init(
    systemTunnel: any SystemTunnel, authenticator: any PacketTunnelWireguardAuthenticator,
    logger: any PacketTunnelLogger, tasks: TaskEnvironment, makeDriver: @escaping @Sendable () -> any WireGuardDriver
  ) {
    self.systemTunnel = systemTunnel
    self.authenticator = authenticator
    self.logger = logger
    self.tasks = tasks
    self.makeDriver = makeDriver
    lifecycle = DriverLifecycle(tasks)
  }

  public func setAttemptReporter(_ reporter: (any AttemptReporter)?) async { self.reporter.set(reporter) }

  public func connect(_ configuration: KapeWireGuardConfig) async throws {
    try await reporter.attempt(configuration, endpoint: configuration.connectedEndpoint) {
      try await lifecycle.connect { [self] in try await bringUp(configuration) }
    }
  }

  private func bringUp(_ configuration: KapeWireGuardConfig) async throws -> DriverLifecycle.Connection {
    let authorized = try await authorized(configuration)
    let setup = try WireGuardSetup(authorized)
    let kind: PacketTunnelSocketKind = setup.endpoint.address.family == .ipv4 ? .udp4 : .udp6
    let socket = try await tasks.makeSocket(kind, on: systemTunnel)
    let driver = makeDriver()
    do {
      logger.debug("WireGuard: waiting for the handshake")
      let isDone: Void? = try await tasks.bounded(Self.handshakeDeadline) {
        try await driver.connect(setup, socket: socket)
      }
      guard isDone != nil else { throw PacketTunnelError.connectTimeout }
      let interface = try await tasks.establish(setup.settings, on: systemTunnel)
      try await driver.attach(interface)
    } catch {
      await driver.stop()
      throw error
    }
    return DriverLifecycle.Connection(driver: driver, gateway: setup.settings.gateway)
  }

  /// With keys: those that the generator got, or fresh ones.
  private func authorized(_ configuration: KapeWireGuardConfig) async throws -> KapeWireGuardConfig {
    guard !configuration.endpointConfiguration.isAuthorized else { return configuration }
    do {
      return try await authenticator.authorize(configuration, logger: logger)
    } catch {
      throw PacketTunnelError.ofAuthentication(error)
    }
  }

  public func runVPN() async -> PacketTunnelError? { await lifecycle.run() }

  public func stop() async { await lifecycle.stop() }

  public var gateway: IpAddress? { get async { await lifecycle.gateway } }

  public func currentDataUsage() async -> PacketTunnelDataUsage? { await lifecycle.currentDataUsage() }
}

extension KapeWireGuardConfig {
  var connectedEndpoint: PacketTunnelConnectedEndpoint {
    let description =
      switch obfuscation {
      case .none: "WireGuard"
      case .amnezia: "WireGuard+Amnezia"
      case .unknown: "WireGuard+Unknown"
      }
    return PacketTunnelConnectedEndpoint(host: host, protocolDescription: description)
  }
}
