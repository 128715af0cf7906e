import Glibc

extension ProviderSession {
  /// The one that is there still, or a new one.
  func readyProvider(_ tunnel: HostedTunnel) async throws -> Provider {
    if let provider { return provider }
    let account = try await UserAccount.find(profile.user, fallbackGroup: profile.group)
    let process = try ProviderProcess(environment.reactor)
    let answer = FirstAnswer<IPCConnection>()
    starting = (process, answer)
    defer { starting = nil }
    let reading = Task { await process.output.run() }
    Task {
      let ending = await process.ending
      // What it said last may be on its way still.
      _ = try? await within(.seconds(1), of: environment.clock, "its output") { await reading.value }
      self.ended(process, ending)
    }
    do {
      // It waits to be told what to be, and has ended when there is nobody to tell it any more.
      try await tunnel.network.note(.process(process.process.identifier, started: process.process.started))
      let request = LaunchRequest(
        account,
        .launch(
          profile.executable, arguments: [profile.executable.path] + profile.arguments,
          environment: variables(account)))
      let connection = try await within(environment.deadlines.launch, of: environment.clock, "the provider") {
        try await process.launched(request)
        return try await withCheckedThrowingContinuation { answer.expect($0) }
      }
      let made = Provider(process: process, connection: connection)
      provider = made
      return made
    } catch {
      process.signal(SIGKILL)
      _ = await process.ending
      throw error
    }
  }

  private func variables(_ account: UserAccount) -> [String] {
    var variables = account.environment(runtimeFolder: account.runtimeFolder)
    variables += ["KAPE_STARTED_BY=kaped", "KAPE_PROFILE=" + profile.id, "KAPE_RUN_DIR=" + RunDirectory.base]
    if let stateHome = profile.stateHome { variables.append("KAPE_STATE_HOME=" + stateHome) }
    return variables
  }

  /// Whether that process is the one that is waited for.
  func isAwaiting(_ process: Int32) -> Bool { starting?.process.process.identifier == process }

  /// It has introduced itself; `connection` is kaped's end of what it was given.
  func attach(_ connection: IPCConnection) {
    Task {
      await connection.run { await self.answer($0, from: connection) }
      await self.hungUp(connection)
    }
    starting?.answer.give(.success(connection))
  }

  private func ended(_ process: ProviderProcess, _ ending: ProviderProcess.Ending) {
    let how = "\(ending)" + (process.output.lastWords.map { "; it said: \($0)" } ?? "")
    if let starting, starting.process === process {
      starting.answer.give(.failure(IPCFailure(.failed, "the provider ended before it introduced itself: \(how)")))
    }
    guard provider?.process === process else { return }
    provider?.connection.close()
    provider = nil
    idle?.cancel()
    events?.yield(.providerEnded(how))
  }

  /// A provider that closes its connection but goes on has no use.
  private func hungUp(_ connection: IPCConnection) async {
    if let provider, provider.connection === connection { provider.process.signal(SIGTERM) }
  }

  /// Without a tunnel it stays for a while, for the next one.
  func rest() {
    guard provider != nil else { return }
    let (limit, clock) = (environment.deadlines.idle, environment.clock)
    idle = Task {
      guard (try? await clock.sleep(for: limit)) != nil else { return }
      await self.dismissIfIdle()
    }
  }

  private func dismissIfIdle() async {
    if life == nil { await dismiss(patiently: true) }
  }

  /// Ends the provider's process. `patiently`: it is hung up on first, which it takes as its end.
  func dismiss(patiently: Bool) async {
    guard let leaving = provider else { return }
    provider = nil
    leaving.connection.close()
    if patiently, await hasEnded(leaving.process) { return }
    leaving.process.signal(SIGTERM)
    if await hasEnded(leaving.process) { return }
    leaving.process.signal(SIGKILL)
    if await !hasEnded(leaving.process) {
      environment.log.error("provider", ["process": "\(leaving.process.process.identifier)", "text": "does not end"])
    }
  }

  func hasEnded(_ process: ProviderProcess) async -> Bool {
    (try? await within(.seconds(1), of: environment.clock, "it") { await process.ending }) != nil
  }

  var outputLines: [String] { provider?.process.output.lines ?? [] }
}
