/// What a session runs in. Tests put their own time, order and network in its place.
package struct SessionEnvironment: Sendable {
  package var tasks: TaskEnvironment
  package var policy: SessionPolicy
  package var network: any NetworkPathMonitor
  package var analyticsQueue: any SerialQueue
  package var observer: any SessionObserver
  /// What the user has chosen, asked when a session begins and when it switches.
  package var selection: @Sendable () -> SessionSelection

  package init(
    clock: any SessionClock = SystemSessionClock(), executor: (any TaskExecutor)? = nil,
    policy: SessionPolicy = SessionPolicy(), network: any NetworkPathMonitor,
    analyticsQueue: any SerialQueue = DispatchSerialQueue(label: "kape.analytics"), observer: any SessionObserver,
    selection: @escaping @Sendable () -> SessionSelection = { SessionSelection() }
  ) {
    tasks = TaskEnvironment(clock: clock, executor: executor)
    tasks.platformDeadline = policy.platformDeadline
    self.policy = policy
    self.network = network
    self.analyticsQueue = analyticsQueue
    self.observer = observer
    self.selection = selection
  }

  package var clock: any SessionClock { tasks.clock }

  @discardableResult
  package func spawn<Success: Sendable>(_ body: @escaping @Sendable () async -> Success) -> Task<Success, Never> {
    tasks.spawn(body)
  }

  package func bounded<Success: Sendable>(
    _ limit: Duration, _ work: @escaping @Sendable () async throws -> Success
  ) async throws -> Success? {
    try await tasks.bounded(limit, work)
  }
}

/// What the user has chosen, as it is reported.
package struct SessionSelection: Hashable, Sendable {
  /// `automatic`, `wireguard`, `lightway` or `openvpn`.
  package var selectedProtocol: String
  package var selectedLocationDescription: String?
  package var connectSource: PacketTunnelConnectSource

  package init(
    selectedProtocol: String = "automatic", selectedLocationDescription: String? = nil,
    connectSource: PacketTunnelConnectSource = .manual
  ) {
    self.selectedProtocol = selectedProtocol
    self.selectedLocationDescription = selectedLocationDescription
    self.connectSource = connectSource
  }
}
