import Glibc

/// One profile's tunnel and the process that runs it: from an app's start to the moment that everything is put back.
/// Whatever happens on the way goes through one queue of events, so that no two ends of a tunnel overlap.
actor ProviderSession {
  struct Environment: Sendable {
    var reactor: Reactor
    var log: EventLog
    var clock: any Clock<Duration>
    var deadlines: ProviderDeadlines
    /// A mark that no tunnel has, until it is given back.
    var takeMark: @Sendable () async throws -> UInt32
    var giveBackMark: @Sendable (UInt32) async -> Void
  }

  enum Event: Sendable {
    case started
    case startFailed(ProviderError)
    /// It did not even say so.
    case startLost(String)
    case stop(reason: UInt64)
    case cancelled(ProviderError?)
    case providerEnded(String)
    case interfaceGone
  }

  /// A running provider: its process and kaped's end of the connection that it was given.
  struct Provider: Sendable {
    let process: ProviderProcess
    let connection: IPCConnection
  }

  nonisolated let environment: Environment
  var profile: ProviderProfile
  var snapshot: ProviderSnapshot
  private var watchers: [UInt64: @Sendable (ProviderSnapshot) -> Void] = [:]
  private var nextWatcher: UInt64 = 0
  private var history: [InterfaceReport.Event] = []
  private static let historyLimit = 32

  /// While there is a tunnel, also one that is only just being made.
  var life: Task<Void, Never>?
  var events: AsyncStream<Event>.Continuation?
  var tunnel: HostedTunnel?
  var isStopping = false
  var downClients: [ControlClient] = []

  var provider: Provider?
  /// One that has not introduced itself yet, and who waits for that.
  var starting: (process: ProviderProcess, answer: FirstAnswer<IPCConnection>)?
  var idle: Task<Void, Never>?
  /// The last of the provider's requests for settings, each of which waits for the one before.
  var settingsTurn: Task<Void, Never>?
  var pendingSettings = 0

  init(_ profile: ProviderProfile, _ environment: Environment) {
    self.profile = profile
    self.environment = environment
    snapshot = ProviderSnapshot(id: profile.id)
  }

  // MARK: What apps ask

  /// Returns when the start has begun; how it goes on is in the status. A tunnel that is up stays as it is.
  func start(options: [UInt8]) async throws(IPCFailure) {
    guard profile.isEnabled else { throw IPCFailure(.refused, "the profile \(profile.id) is disabled") }
    // One that is on its way down is waited for: a start after a stop is a start.
    while snapshot.status == .disconnecting, let life { await life.value }
    guard life == nil else { return }
    idle?.cancel()
    let (stream, continuation) = AsyncStream.makeStream(of: Event.self, bufferingPolicy: .bufferingOldest(64))
    events = continuation
    isStopping = false
    snapshot.lastError = nil
    set(.connecting)
    life = Task { await live(options, stream) }
  }

  /// Returns when everything is put back.
  func stop(reason: UInt64) async {
    guard let life else { return }
    isStopping = true
    events?.yield(.stop(reason: reason))
    starting?.answer.give(.failure(CancellationError()))
    await life.value
  }

  /// nil: the provider has no answer. Throws `IPCFailure`.
  func message(_ data: [UInt8]) async throws -> [UInt8]? {
    guard let provider, snapshot.status.isUp else { throw IPCFailure(.refused, "the tunnel is not up") }
    let reply = try await provider.connection.ask(
      "message", [.init("data", .string(Base64.encode(data)))], within: environment.deadlines.message,
      of: environment.clock)
    do throws(JSONFields.Fault) {
      var fields = try JSONFields(reply.value, "message")
      return try fields.data("data", limit: IPCFrame.largest)
    } catch {
      throw IPCFailure(.failed, "the provider's answer makes no sense: \(error)")
    }
  }

  /// Installed anew. A process of another executable, or with other arguments, is of no use for the next tunnel.
  func replace(_ profile: ProviderProfile) async {
    let before = self.profile
    self.profile = profile
    guard
      before.executable != profile.executable || before.arguments != profile.arguments
        || before.stateHome != profile.stateHome
    else { return }
    if life == nil { await dismiss(patiently: true) } else { isOutdated = true }
  }
  var isOutdated = false

  // MARK: Status

  /// Told of what is now and of each change, until it is forgotten.
  func watch(_ watcher: @escaping @Sendable (ProviderSnapshot) -> Void) -> UInt64 {
    nextWatcher += 1
    watchers[nextWatcher] = watcher
    watcher(snapshot)
    return nextWatcher
  }

  func forget(_ watcher: UInt64) { watchers[watcher] = nil }

  func set(_ status: ProviderStatus) {
    guard snapshot.status != status else { return }
    snapshot.status = status
    if status == .disconnected || status == .connecting { snapshot.connectedSince = 0 }
    if status == .connected, snapshot.connectedSince == 0 { snapshot.connectedSince = Timestamp.now() }
    note("status", status.rawValue)
    for watcher in watchers.values { watcher(snapshot) }
  }

  func setReasserting(_ isReasserting: Bool) {
    if isReasserting, snapshot.status == .connected { set(.reasserting) }
    if !isReasserting, snapshot.status == .reasserting { set(.connected) }
  }

  /// One line of the log and one of the status.
  func note(_ what: StaticString, _ text: String) {
    environment.log.verbose(
      "tunnel", ["profile": profile.id, "user": "\(profile.user)", "what": what.description, "value": text])
    history.append(.init(time: Timestamp.now(), text: "\(what) \(text)"))
    if history.count > Self.historyLimit { history.removeFirst() }
  }

  func report() async -> InterfaceReport {
    var report = InterfaceReport(name: tunnel?.name ?? "", program: "kaped")
    report.process = provider?.process.process.identifier ?? 0
    report.configurationFile = "profile \(profile.id) of user \(profile.user)"
    report.upSince = snapshot.connectedSince
    report.firewallMark = tunnel?.network.mark ?? 0
    report.settings = await tunnel?.network.applied()
    report.warnings = await tunnel?.network.warnings ?? []
    report.events = history
    return report
  }
}
