import Glibc
package import KapeProtocols

/// One tunnel from a wg-quick file: brought up, run, and taken down with everything put back.
package actor TunnelSession {
  package struct Request: Sendable {
    package var file: ConfigurationFile
    package var configuration: WireGuardConfiguration
    package var table: RoutePlan.Table
    package var options: TunnelOptions
    package var keyLog: KeyLog?
    /// Where the file says ListenPort.
    package var listenPortLine: Int?

    package init(
      file: ConfigurationFile, configuration: WireGuardConfiguration, table: RoutePlan.Table, options: TunnelOptions
    ) {
      self.file = file
      self.configuration = configuration
      self.table = table
      self.options = options
    }
  }

  /// Why a tunnel cannot be had; the cases are those of the program's exit codes.
  package enum Failure: Error, Equatable, CustomStringConvertible {
    case inUse(String)
    case missing(String)
    case failed(String)

    package var description: String {
      switch self {
      case .inUse(let text), .missing(let text), .failed(let text): text
      }
    }
  }

  /// Why it ended.
  package enum Ending: Sendable {
    case signal(Int32)
    case asked(ControlClient)
    case service(WireGuardService.Ending)
    case failed(String)
  }

  nonisolated let request: Request
  nonisolated let reactor: Reactor
  nonisolated let log: EventLog
  nonisolated let directory: RunDirectory
  nonisolated let journal: Journal

  var service: WireGuardService?
  private var serviceTask: Task<WireGuardService.Ending, Never>?
  private var control: ControlSocket?
  private var isUp = false
  var upSince: UInt64 = 0
  var settings = AppliedSettings()
  /// The interface's index; 0: not made yet.
  var index: UInt32 = 0

  // Endpoints.
  var names = EndpointNames()
  var resolver: UnderlayResolver?
  var watch: UnderlayWatch?
  var look: Task<Void, Never>?

  // What status tells.
  package var warnings: [String] = []
  /// What was left as it is when everything else was put back.
  package private(set) var remarks: [String] = []
  /// Whether everything was put back.
  private var isPutBack = true
  var events: [InterfaceReport.Event] = []
  static let eventLimit = 32

  nonisolated var name: String { request.file.interface }
  nonisolated var configuration: WireGuardConfiguration { request.configuration }

  /// Takes the name. What a killed process left behind under it is put back first. `say` gets what a person should know.
  package init(
    _ request: Request, reactor: Reactor, log: EventLog, say: @Sendable (String) -> Void
  ) async throws(Failure) {
    self.request = request
    self.reactor = reactor
    self.log = log
    directory = try Self.claim(request.file.interface)
    try await Self.recover(directory, say)
    Self.restoreForgottenFile(request.file.interface, say)
    do throws(Failure) {
      try Self.checkFree(request.file.interface)
    } catch {
      directory.remove()
      throw error
    }
    do throws(SystemError) {
      journal = try Journal(RunDirectory.journal(of: request.file.interface))
      try journal.append(.began(PutBack.currentOrigin(configuration: request.file.path)))
      let hooks = Hooks(interface: request.file.interface)
      for command in request.configuration.interface.preDown {
        try journal.append(.downCommand(.init(.before, hooks.expand(command))))
      }
      for command in request.configuration.interface.postDown {
        try journal.append(.downCommand(.init(.after, hooks.expand(command))))
      }
    } catch {
      directory.remove()
      throw .failed(error.description)
    }
  }

  private static func claim(_ name: String) throws(Failure) -> RunDirectory {
    do throws(RunDirectory.Failure) {
      return try RunDirectory(name)
    } catch {
      switch error {
      case .held(let process):
        throw .inUse("\(name) is held by \(SocketHolder(processIdentifier: process))")
      case .system(let error):
        throw error.code == EACCES || error.code == EPERM || error.code == EROFS
          ? .missing("\(error) (it takes root, or KAPE_RUN_DIR for another folder)") : .failed(error.description)
      }
    }
  }

  private static func recover(_ directory: RunDirectory, _ say: @Sendable (String) -> Void) async throws(Failure) {
    do throws(Recovery.Failure) {
      if try await Recovery.run(directory, say: say) {
        say("\(directory.name): put back what a process that was killed had left behind")
      }
    } catch {
      throw .failed("\(directory.name): \(error)")
    }
  }

  private static func restoreForgottenFile(_ name: String, _ say: (String) -> Void) {
    do throws(SystemError) {
      if try Recovery.restoreForgottenFile(name) { say("\(name): put \(NameServices.file) back as it was before") }
    } catch {
      say("\(name): \(error)")
    }
  }

  private static func checkFree(_ name: String) throws(Failure) {
    guard if_nametoindex(name) != 0 else { return }
    if let holder = SocketHolder.ofTun(named: name).first ?? ConfigurationSocket.holder(of: name) {
      throw .inUse("\(name) is held by \(holder)")
    }
    throw .inUse("there is an interface \(name) already")
  }

  // MARK: Up

  /// Brings everything up, or nothing: when it fails, and when the task is cancelled, all is put back before it throws.
  package func bringUp() async throws(Failure) {
    do {
      try await makeEverything()
    } catch {
      // A task of its own: in one that was cancelled no program would be let run, and some put things back.
      let problems = await Task { await takeDown(nil) }.value
      forget()
      let failure = Self.failure(error)
      throw problems.isEmpty ? failure : .failed(([failure.description] + problems).joined(separator: "\n"))
    }
    isUp = true
    upSince = Timestamp.now()
    note("up", ["addresses": settings.addresses.map(\.description).joined(separator: ","), "mtu": "\(settings.mtu)"])
  }

  static func failure(_ error: any Error) -> Failure {
    switch error {
    case let error as Failure: return error
    case let error as WireGuardService.Failure:
      switch error {
      case .inUse(let text): return .inUse(text)
      case .missing(let text): return .missing(text)
      case .failed(let text): return .failed(text)
      }
    // EACCES is no matter of privilege: an IPv6 address where IPv6 is disabled, for one.
    case let error as NetlinkError where error.code == EPERM:
      return .missing("\(error) (it takes root, or CAP_NET_ADMIN)")
    case let error as NetlinkError: return .failed(error.description)
    case let error as SystemError: return .failed(error.description)
    case is CancellationError: return .failed("interrupted")
    default: return .failed("\(error)")
    }
  }

  private func makeEverything() async throws {
    let hooks = Hooks(interface: name)
    let interface = configuration.interface
    try await hooks.run(interface.preUp)
    resolver = UnderlayResolver()
    let endpoints = try await lookUpEndpoints()
    try Task.checkCancellation()
    let netlink = try Netlink()
    let service = try await makeInterface()
    try await service.device.apply(configuration.change { endpoints[$0] })
    for address in interface.addresses { try netlink.addAddress(address, to: index) }
    settings.addresses = interface.addresses
    // Before the link is up, so that a port that is taken is a failure here and not a line in a log.
    try await listen(service.device)
    settings.mtu = try chooseMTU(Array(endpoints.values), netlink)
    try netlink.setLink(index, up: true, mtu: settings.mtu)
    try Task.checkCancellation()
    try await setNameServices()
    try await setRoutes(Array(endpoints.values), netlink)
    try Task.checkCancellation()
    try await hooks.run(interface.postUp)
    try Task.checkCancellation()
    // Before anybody is told that it is up, so that who asks it something at once is heard.
    control = try ControlSocket(RunDirectory.socket(of: name))
    try journal.append(.up)
  }

  private func listen(_ device: WireGuardDevice) async throws {
    do throws(TunnelError) {
      _ = try await device.follow(up: true)
    } catch {
      guard error.code == EADDRINUSE, configuration.interface.listenPort != 0 else { throw error }
      let diagnostic = Diagnostic(
        .error, file: request.file.path, line: request.listenPortLine, key: "ListenPort",
        reason: "UDP port \(configuration.interface.listenPort) is in use by another program or interface",
        remedy: "give another, or leave the line out for any that is free ('ss -lunp' tells who has it)")
      throw Failure.failed(diagnostic.description)
    }
  }

  private func makeInterface() async throws -> WireGuardService {
    try journal.append(.socket(path: ConfigurationSocket.path(of: name)))
    var wanted = WireGuardService.Request(interface: name, options: request.options)
    wanted.keyLog = request.keyLog
    wanted.reactor = reactor
    wanted.configurationFile = request.file.path
    let level: EventLog.Level = log.level == .silent ? .silent : .error
    let service = try await WireGuardService(wanted) { EventLog(level: level, interface: $0) }
    self.service = service
    guard let index = service.device.tun.currentIndex() else { throw SystemError("if_nametoindex", code: ENODEV) }
    self.index = index
    serviceTask = Task { [weak self] in
      await service.run(nil) { [weak self] event in await self?.take(event) }
    }
    return service
  }

  // MARK: Running

  /// Runs until something ends it; everything is still up then.
  package func run(_ signals: TerminationSignals) async -> Ending {
    // Nobody is to wait on it while the tunnel is taken down.
    guard let control = control.take() else { return .failed("the tunnel is not up") }
    let requests = AsyncStream<Ending>.makeStream()
    // Not among the tasks that are waited for: the service goes on while the tunnel is taken down.
    if let serviceTask {
      Task { requests.continuation.yield(.service(await serviceTask.value)) }
    }
    return await withTaskGroup(of: Ending?.self) { group in
      let reactor = self.reactor
      group.addTask {
        do { return .signal(try await signals.next(reactor)) } catch { return nil }
      }
      group.addTask {
        try? await control.run(reactor) { request, client in
          if request == .down {
            requests.continuation.yield(.asked(client))
          } else {
            await self.answer(request, client)
          }
        }
        return nil
      }
      group.addTask {
        for await request in requests.stream { return request }
        return nil
      }
      group.addTask {
        await self.followNetwork()
        return nil
      }
      var ending: Ending?
      while ending == nil, let next = await group.next() { ending = next }
      group.cancelAll()
      requests.continuation.finish()
      return ending ?? .failed("nothing is left to wait for")
    }
  }

  // MARK: Down

  /// Takes everything down and puts everything back, whatever fails on the way. Gives what failed, in words. Output of
  /// the commands goes to `client`, if one asked.
  package func takeDown(_ client: ControlClient?) async -> [String] {
    var problems: [String] = []
    let hooks = Hooks(interface: name)
    let output: Subprocess.Output = client.map { client in .lines { client.raw($0) } } ?? .inherited
    let wasUp = isUp
    if wasUp {
      do { try journal.append(.ending) } catch { problems.append("\(error)") }
      problems += await hooks.runAll(configuration.interface.preDown, output)
      if configuration.interface.saveConfig, service?.device.tun.isAttached == true {
        do { try await save() } catch { problems.append("\(error)") }
      }
    }
    isUp = false
    look?.cancel()
    problems += await putBack()
    await endInterface(&problems)
    if wasUp { problems += await hooks.runAll(configuration.interface.postDown, output) }
    note("down", [:])
    return problems
  }

  private func putBack() async -> [String] {
    do {
      let records = try Journal.read(journal.path) ?? []
      let putBack = try PutBack(name, JournalSummary(records))
      await putBack.run()
      remarks += await putBack.remarks
      let problems = await putBack.problems
      isPutBack = problems.isEmpty
      return problems
    } catch {
      isPutBack = false
      return ["\(error)"]
    }
  }

  /// The link goes with its addresses and routes; then the worker's thread and the sockets.
  private func endInterface(_ problems: inout [String]) async {
    guard let service else { return }
    if index != 0, service.device.tun.isAttached {
      do { try Netlink().deleteLink(index) } catch {
        if error.code != ENODEV { problems.append("\(error)") }
      }
    }
    service.device.stop()
    serviceTask?.cancel()
    _ = await serviceTask?.value
    serviceTask = nil
    self.service = nil
    index = 0
  }

  /// Removes the state, unless something in it is still to be put back. The name is free when the process has ended.
  package func forget() {
    if isPutBack { directory.remove() }
  }

  // MARK: Telling

  /// One line of the log and one of the status.
  func note(_ event: StaticString, _ fields: KeyValuePairs<StaticString, String>, isError: Bool = false) {
    if isError { log.error(event, fields) } else { log.verbose(event, fields) }
    let text = ([event.description] + fields.map { "\($0.key)=\($0.value)" }).joined(separator: " ")
    events.append(.init(time: Timestamp.now(), text: text))
    if events.count > Self.eventLimit { events.removeFirst() }
  }

  func warn(_ text: String) {
    warnings.append(text)
    log.error("warning", ["text": text])
  }
}
