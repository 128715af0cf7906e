import Foundation

/// Keeps one tunnel up: takes configurations from a generator, connects them by the controllers of their type, and goes
/// on to the next when one fails or drops, until it is stopped.
///
/// Every call may come at any time, from any task, in any order. What a session does is decided on this actor, one step
/// at a time; whatever may take long (generator, controllers, platform) runs in tasks of its own, with a deadline, and
/// is no longer listened to when the session has moved on. A session that runs keeps itself until it is stopped.
public actor KapeSessionController {
  nonisolated package let generator: any VpnConfigurationGenerator
  nonisolated let environment: SessionEnvironment
  nonisolated let logger: any PacketTunnelLogger
  nonisolated package let analytics: SessionAnalytics
  nonisolated let platform: SessionPlatform
  let slots: [ControllerSlot]

  var state = SessionState() {
    didSet { if state != oldValue { environment.observer.sessionDidChange(state) } }
  }
  var activity = Activity.idle
  /// What the session waits for; the results of others are not listened to.
  var operation: Operation?
  var nextOperation: UInt64 = 0

  // What is kept from one step to the next within a session.

  var queue: [any VpnConfiguration] = []
  var queueIsRound = false
  var pull: Task<Void, Never>?
  var failures = 0
  var attemptFailures = 0
  var shortConnections = 0
  var attemptBegan = Duration.zero
  var attemptError: PacketTunnelError?
  var wasConnected = false
  var connectedAt = Duration.zero
  /// A lock is to be raised before anything else; then a connection begins for that reason.
  var beginning: PacketTunnelConnectReason?
  var lockIsRaised = false
  var reportedGenerators: Set<String> = []

  var path = NetworkPath()
  var pathIsKnown = false
  /// That the connection was made on.
  var pathInUse: NetworkPath?
  var pathTask: Task<Void, Never>?
  var pathTimer: SessionTimer?
  var lastPathAction: Duration?

  var isPaused = false
  var pauseTimer: SessionTimer?
  var statisticsTimer: SessionTimer?
  var startTimer: SessionTimer?

  nonisolated let startWaiters = Waiters()
  nonisolated let switchWaiters = Waiters()
  nonisolated let pauseWaiters = Waiters()
  nonisolated let resumeWaiters = Waiters()
  nonisolated let stopWaiters = Waiters()

  package init(
    generator: any VpnConfigurationGenerator, controllers: [any ConnectionController],
    logger: any PacketTunnelLogger, reassertingController: (any ReassertingController)? = nil,
    systemTunnel: (any SystemTunnel)? = nil, analytics: any VpnConnectionAnalytics = NoopVpnConnectionAnalytics(),
    environment: SessionEnvironment
  ) {
    self.generator = generator
    self.environment = environment
    self.logger = logger
    let reporter = SessionAnalytics(analytics, logger: logger, environment: environment)
    self.analytics = reporter
    platform = SessionPlatform(
      tunnel: systemTunnel, reasserting: reassertingController, logger: logger, environment: environment)
    slots = controllers.map { ControllerSlot($0, SlotReporter(reporter)) }
  }

  // MARK: Questions

  /// Bytes of the connection that is up; nil when there is none, or they are not counted.
  public func currentDataUsage() async -> PacketTunnelDataUsage? {
    guard case .connected(let slot) = activity else { return nil }
    let controller = slots[slot].controller
    return await dataUsage(of: controller)
  }

  nonisolated func dataUsage(of controller: any ConnectionController) async -> PacketTunnelDataUsage? {
    (try? await environment.bounded(environment.policy.platformDeadline) { await controller.currentDataUsage() }) ?? nil
  }

  /// The server's private address in the connection that is up, if there is one.
  public func currentGateway() async -> IpAddress? {
    guard case .connected(let slot) = activity else { return nil }
    let controller = slots[slot].controller
    return (try? await environment.bounded(environment.policy.platformDeadline) { await controller.gateway }) ?? nil
  }
}

extension KapeSessionController {
  /// What the session is at, with the number of the controller that is in use.
  enum Activity {
    /// There is none.
    case idle
    case raisingLock
    case waitingForNetwork
    case pulling
    case connecting(Int)
    case connected(Int)
    /// A connection is taken down before the next.
    case unwinding(Int)
    case backingOff
    /// Everything is taken down before the session parks.
    case pausing(Int?)
    case paused
    case disconnecting

    /// For logs and tests.
    var name: String {
      switch self {
      case .idle: "idle"
      case .raisingLock: "raisingLock"
      case .waitingForNetwork: "waitingForNetwork"
      case .pulling: "pulling"
      case .connecting: "connecting"
      case .connected: "connected"
      case .unwinding: "unwinding"
      case .backingOff: "backingOff"
      case .pausing: "pausing"
      case .paused: "paused"
      case .disconnecting: "disconnecting"
      }
    }

    var isRunning: Bool {
      switch self {
      case .idle, .disconnecting: false
      default: true
      }
    }
  }

  package var activityName: String { activity.name }
}
