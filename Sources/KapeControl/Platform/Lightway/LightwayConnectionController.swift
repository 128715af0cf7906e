/// Connects by Lightway, with engines that `driverFactory` makes: one for each endpoint of a group, which are tried at
/// the same time.
///
/// A group's credentials are asked for once, right before. Attempts are told when all is over, as nobody sees into the
/// race: the winner alone, or every endpoint of the group when none was online in time or the whole was cancelled.
public final class LightwayConnectionController: ConnectionController {
  private let systemTunnel: any SystemTunnel
  private let authenticator: any PacketTunnelLightwayAuthenticator
  private let connectionToken: (@Sendable () async throws -> String)?
  private let logger: any PacketTunnelLogger
  private let tasks: TaskEnvironment
  private let makeDriver: @Sendable () -> any LightwayDriver
  private let lifecycle: DriverLifecycle
  private let reporter = ReporterPlace()

  /// `connectionToken` gives the backend's token for a proxy with `.tokenAuth`; nil: such a proxy cannot be used.
  public convenience init(
    systemTunnel: any SystemTunnel, authenticator: any PacketTunnelLightwayAuthenticator,
    connectionToken: (@Sendable () async throws -> String)? = nil, logger: any PacketTunnelLogger,
    driverFactory: @escaping @Sendable () -> any LightwayDriver
  ) {
    self.init(
      systemTunnel: systemTunnel, authenticator: authenticator, connectionToken: connectionToken, logger: logger,
      tasks: TaskEnvironment(), driverFactory: driverFactory)
  }

  package init(
    systemTunnel: any SystemTunnel, authenticator: any PacketTunnelLightwayAuthenticator,
    connectionToken: (@Sendable () async throws -> String)?, logger: any PacketTunnelLogger, tasks: TaskEnvironment,
    driverFactory: @escaping @Sendable () -> any LightwayDriver
  ) {
    self.systemTunnel = systemTunnel
    self.authenticator = authenticator
    self.connectionToken = connectionToken
    self.logger = logger
    self.tasks = tasks
    makeDriver = driverFactory
    lifecycle = DriverLifecycle(tasks)
  }

  public func setAttemptReporter(_ reporter: (any AttemptReporter)?) async { self.reporter.set(reporter) }

  public func connect(_ configuration: LightwayConfiguration) async throws {
    let began = tasks.clock.now
    let race = RaceReport()
    do {
      try await lifecycle.connect { [self] in try await bringUp(configuration, race) }
      race.winner.map { report(configuration, [$0], .connected, since: began) }
    } catch {
      let error = PacketTunnelError.ofAttempt(error)
      let all = Array(configuration.endpoints.indices)
      if error is CancellationError {
        if race.isUnderWay { report(configuration, all, .cancelled, since: began) }
      } else if race.timedOut {
        report(configuration, all, .failed(.connectTimeout), since: began)
      }
      throw error
    }
  }

  private func bringUp(
    _ configuration: LightwayConfiguration, _ report: RaceReport
  ) async throws -> DriverLifecycle.Connection {
    let credentials = try await credentials(for: configuration)
    let tunnel = systemTunnel
    logger.debug("Lightway: \(configuration.endpoints.count) endpoints at once")
    report.isUnderWay = true
    let race = LightwayRace(tasks: tasks, makeDriver: makeDriver) { driver, index in
      try await driver.connect(
        configuration.endpoints[index], of: configuration, credentials: credentials, systemTunnel: tunnel)
    }
    let winner: LightwayRace.Winner
    do {
      winner = try await race.run(configuration.endpoints.count)
    } catch is LightwayRace.TimedOut {
      report.timedOut = true
      throw PacketTunnelError.connectTimeout
    }
    do {
      var settings = winner.settings
      if !configuration.dnsServers.isEmpty { settings.dnsServers = configuration.dnsServers }
      try await winner.driver.attach(try await tasks.establish(settings, on: tunnel))
      report.winner = winner.index
      return DriverLifecycle.Connection(driver: winner.driver, gateway: settings.gateway)
    } catch {
      await winner.driver.stop()
      throw error
    }
  }

  private func credentials(for configuration: LightwayConfiguration) async throws -> LightwayCredentials {
    let credentials: LightwayCredentials
    do {
      if let token = configuration.dedicatedIPToken {
        credentials = .token(token)
      } else if configuration.proxy?.authentication == .tokenAuth {
        guard let connectionToken else {
          throw PacketTunnelError.unsupportedConfiguration("a proxy with tokenAuth, without the backend's tokens")
        }
        credentials = .token(try await connectionToken())
      } else {
        credentials = try await authenticator.credentials(for: configuration)
      }
    } catch {
      throw PacketTunnelError.ofAuthentication(error)
    }
    guard !credentials.isEmpty else { throw PacketTunnelError.emptyCredentials }
    return credentials
  }

  private func report(
    _ configuration: LightwayConfiguration, _ indices: [Int], _ result: PacketTunnelAttemptResult, since began: Duration
  ) {
    guard let reporter = reporter.current else { return }
    for index in indices {
      var candidate = configuration
      candidate.endpoints = [configuration.endpoints[index]]
      let endpoint = result == .connected ? configuration.endpoints[index].connectedEndpoint : nil
      if let reporter = reporter as? any PastAttemptReporter {
        reporter.attemptDidHappen(
          configuration: candidate, result: result, elapsed: tasks.clock.now - began, endpoint: endpoint)
      } else {
        reporter.attemptDidEnd(
          reporter.attemptDidBegin(configuration: candidate), result: result, endpoint: endpoint)
      }
    }
  }

  public func runVPN() async -> PacketTunnelError? { await lifecycle.run() }

  public func stop() async { await lifecycle.stop() }

  public var gateway: IpAddress? { get async { await lifecycle.gateway } }

  public func currentDataUsage() async -> PacketTunnelDataUsage? { await lifecycle.currentDataUsage() }
}

extension LightwayEndpoint {
  var connectedEndpoint: PacketTunnelConnectedEndpoint {
    PacketTunnelConnectedEndpoint(host: ip.description, protocolDescription: "lightway-\(transport.rawValue)")
  }
}
