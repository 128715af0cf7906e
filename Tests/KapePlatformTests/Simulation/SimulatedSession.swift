import KapePlatform

/// A session with everything around it scripted.
struct SimulatedSession: Sendable {
  let time: SimulatedTime
  let journal: Journal
  let log: Journal
  let network: ScriptedNetwork
  let tunnel: ScriptedTunnel
  let analytics: RecordingAnalytics
  let observer: RecordingObserver
  let environment: SessionEnvironment
  let session: KapeSessionController

  /// `parts` makes the generator and the controllers.
  init(
    shuffledBy seed: UInt64? = nil, policy change: (inout SessionPolicy) -> Void = { _ in },
    path: NetworkPath = ScriptedNetwork.wifi, reporterTakes: Duration = .zero,
    selection: @escaping @Sendable () -> SessionSelection = { SessionSelection() },
    tunnel makeTunnel: (SimulatedTime, Journal) -> ScriptedTunnel = { ScriptedTunnel(time: $0, journal: $1) },
    _ parts: (SimulatedTime, Journal) -> (any VpnConfigurationGenerator, [any ConnectionController])
  ) {
    time = SimulatedTime(shuffledBy: seed)
    journal = Journal()
    log = Journal()
    network = ScriptedNetwork(path)
    tunnel = makeTunnel(time, journal)
    analytics = RecordingAnalytics()
    observer = RecordingObserver(journal)
    var policy = SessionPolicy()
    policy.backoff.jitter = { 1 }
    change(&policy)
    environment = SessionEnvironment(
      clock: time, executor: time, policy: policy, network: network,
      analyticsQueue: SimulatedQueue(time: time, takes: reporterTakes), observer: observer, selection: selection)
    let (generator, controllers) = parts(time, journal)
    session = KapeSessionController(
      generator: generator, controllers: controllers, logger: JournalLogger(journal: log),
      reassertingController: tunnel, systemTunnel: tunnel, analytics: analytics, environment: environment)
  }

  /// The usual: endpoints one at a time, one controller.
  static func simple(
    _ answers: [ScriptedGenerator.Answer] = [.give(Endpoint("a"))],
    connecting: @escaping @Sendable (Endpoint, Int) -> Script = { _, _ in .succeed() },
    running: @escaping @Sendable (Int) -> (error: PacketTunnelError?, after: Duration)? = { _ in nil },
    stopping: @escaping @Sendable (Int) -> Script = { _ in .succeed() }
  ) -> (SimulatedTime, Journal) -> (any VpnConfigurationGenerator, [any ConnectionController]) {
    { time, journal in
      (
        ScriptedGenerator(answers, time: time, journal: journal),
        [
          ScriptedController<Endpoint>(
            time: time, journal: journal, connecting: connecting, running: running, stopping: stopping)
        ]
      )
    }
  }

  @discardableResult
  func start(within limit: Duration = .seconds(100_000)) -> Result<Void, any Error>? {
    time.perform(within: limit) { [session] in try await session.start() }
  }

  @discardableResult
  func stop() -> Duration {
    let before = time.now
    time.perform { [session] in await session.stop() }
    return time.now - before
  }

  func switchLocation() -> Result<Void, any Error>? {
    time.perform { [session] in try await session.switchLocation() }
  }

  func call(_ body: @escaping @Sendable (KapeSessionController) async -> Void) {
    time.perform { [session] in await body(session) }
  }
}
