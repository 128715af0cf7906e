/// Makes sessions.
public enum SessionControllerFactory {
  /// A session that connects what `configurationGenerator` gives, each by the controller of its type.
  ///
  /// - Parameters:
  ///   - appGroupIdentifier: the container that app and tunnel share; what the user has chosen is read there.
  ///   - loggerFactory: makes a logger for a part of the SDK, by its name.
  ///   - reassertingController: told when a tunnel that was up comes up again.
  ///   - systemTunnel: the one that the controllers have; nil: they do without.
  ///   - analytics: told of everything that happens, on a queue of its own.
  public static func make(
    configurationGenerator: any VpnConfigurationGenerator,
    connectionControllers: [any ConnectionController],
    appGroupIdentifier: String,
    loggerFactory: @escaping @Sendable (String) -> any PacketTunnelLogger,
    reassertingController: (any ReassertingController)? = nil,
    systemTunnel: (any SystemTunnel)? = nil,
    analytics: any VpnConnectionAnalytics = NoopVpnConnectionAnalytics()
  ) async -> KapeSessionController {
    await make(
      configurationGenerator: configurationGenerator, connectionControllers: connectionControllers,
      logger: loggerFactory("session"), reassertingController: reassertingController, systemTunnel: systemTunnel,
      analytics: analytics, observers: [], selection: { SessionSelection() })
  }

  /// The same with a policy, further observers and another idea of what the user has chosen.
  package static func make(
    configurationGenerator: any VpnConfigurationGenerator, connectionControllers: [any ConnectionController],
    logger: any PacketTunnelLogger, reassertingController: (any ReassertingController)?,
    systemTunnel: (any SystemTunnel)?, analytics: any VpnConnectionAnalytics, policy: SessionPolicy = SessionPolicy(),
    observers: [any SessionObserver], selection: @escaping @Sendable () -> SessionSelection
  ) async -> KapeSessionController {
    let underlay = await (systemTunnel as? any UnderlayTelling)?.underlay
    let shown = PublishedSessionObserver(await PacketTunnelState.shared)
    return KapeSessionController(
      generator: configurationGenerator, controllers: connectionControllers, logger: logger,
      reassertingController: reassertingController, systemTunnel: systemTunnel, analytics: analytics,
      environment: SessionEnvironment(
        policy: policy,
        network: UnderlayPathMonitor(mark: underlay?.mark ?? 0, tunnel: underlay?.interface, logger: logger),
        observer: SessionObservers([shown] + observers), selection: selection))
  }
}

/// A system tunnel that knows what tells its own packets from others.
package protocol UnderlayTelling: SystemTunnel {
  /// The mark of sockets past the tunnel, and the tunnel's interface.
  var underlay: (mark: UInt32, interface: String)? { get async }
}
