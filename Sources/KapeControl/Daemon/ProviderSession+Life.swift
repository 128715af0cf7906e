import Glibc

extension ProviderSession {
  /// How a tunnel came to its end.
  private enum End {
    /// The provider is to be told to stop, and why.
    case tell(reason: UInt64)
    /// It knows, or is gone.
    case settled
    /// Nobody knows what it does now.
    case broken
  }

  /// NEProviderStopReason.
  private static let providerFailed: UInt64 = 2

  /// One tunnel, from its name to its end.
  func live(_ options: [UInt8], _ stream: AsyncStream<Event>) async {
    var mark: UInt32?
    var service: Task<Void, Never>?
    var end = End.broken
    do {
      let taken = try await environment.takeMark()
      mark = taken
      let tunnel = try await makeTunnel(taken)
      service = Task {
        await tunnel.serve(environment.reactor) {
          await self.report()
        } down: { client in
          await self.down(client)
        }
      }
      let provider = try await readyProvider(tunnel)
      begin(provider, tunnel, options)
      end = await follow(stream)
    } catch {
      if !isStopping { snapshot.lastError = ProviderError("\(error)") }
      note("failed", "\(error)")
    }
    set(.disconnecting)
    await endProvider(end)
    let problems = await endTunnel()
    service?.cancel()
    await finish(mark, problems)
  }

  private func makeTunnel(_ mark: UInt32) async throws -> HostedTunnel {
    let log = environment.log
    let made = try await HostedTunnel.make(for: profile, mark: mark, provider?.process.process) { text in
      log.error("tunnel", ["text": text])
    }
    tunnel = made
    snapshot.interface = made.name
    return made
  }

  private func begin(_ provider: Provider, _ tunnel: HostedTunnel, _ options: [UInt8]) {
    let continuation = events
    let body: [JSONValue.Member] = [
      .init("interface", .string(tunnel.name)), .init("mark", .number(tunnel.network.mark)),
      .init("options", .string(Base64.encode(options))), .init("profile", .string(profile.id)),
      .init("configuration", .string(Base64.encode(profile.configuration))),
    ]
    let (limit, clock) = (environment.deadlines.start, environment.clock)
    Task {
      do {
        let reply = try await provider.connection.ask(
          "start", body, descriptors: [tunnel.network.tun.descriptor], within: limit, of: clock)
        continuation?.yield(Self.outcome(reply.value))
      } catch {
        if (error as? IPCFailure)?.code == .late {
          continuation?.yield(.startLost("the tunnel did not come up within \(limit)"))
        } else if await !self.hasEnded(provider.process) {
          // Else its end is what there is to tell, and is told.
          continuation?.yield(.startLost("\(error)"))
        }
      }
    }
  }

  /// `{}`, or with an error in it.
  private static func outcome(_ value: JSONValue) -> Event {
    do throws(JSONFields.Fault) {
      var fields = try JSONFields(value, "start")
      guard var error = try fields.object("error") else { return .started }
      return .startFailed(try ProviderError(&error))
    } catch {
      return .startLost("the provider's answer makes no sense: \(error)")
    }
  }

  private func follow(_ stream: AsyncStream<Event>) async -> End {
    for await event in stream {
      switch event {
      case .started: set(.connected)
      case .startFailed(let error):
        snapshot.lastError = error
        note("failed", error.message)
        return .settled
      case .startLost(let reason):
        snapshot.lastError = ProviderError(reason)
        note("failed", reason)
        return .broken
      case .stop(let reason): return .tell(reason: reason)
      case .cancelled(let error):
        snapshot.lastError = error
        note("cancelled", error?.message ?? "")
        return .settled
      case .providerEnded(let how):
        snapshot.lastError = ProviderError("the provider's process ended: \(how)")
        note("provider_ended", how)
        return .settled
      case .interfaceGone:
        snapshot.lastError = ProviderError("the interface was removed by another program")
        return .tell(reason: Self.providerFailed)
      }
    }
    return .broken
  }

  // MARK: Its end

  private func endProvider(_ end: End) async {
    switch end {
    case .settled:
      guard let provider else { return }
      // So that it lets go of what it had for the tunnel.
      do {
        _ = try await provider.connection.ask("ended", within: environment.deadlines.stop, of: environment.clock)
      } catch {
        note("ended", "\(error)")
        await dismiss(patiently: false)
      }
    case .broken: await dismiss(patiently: false)
    case .tell(let reason):
      guard let provider else { return }
      do {
        _ = try await provider.connection.ask(
          "stop", [.init("reason", .unsigned(reason))], within: environment.deadlines.stop, of: environment.clock)
      } catch {
        note("stop", "\(error)")
        await dismiss(patiently: false)
      }
    }
  }

  private func endTunnel() async -> [String] {
    settingsTurn?.cancel()
    await settingsTurn?.value
    settingsTurn = nil
    let problems = await tunnel?.end() ?? []
    for problem in problems { environment.log.error("put_back", ["problem": problem]) }
    if !problems.isEmpty, snapshot.lastError == nil {
      snapshot.lastError = ProviderError(problems.joined(separator: "; "))
    }
    return problems
  }

  private func finish(_ mark: UInt32?, _ problems: [String]) async {
    // The name is free with it.
    tunnel = nil
    snapshot.interface = nil
    events?.finish()
    events = nil
    if let mark { await environment.giveBackMark(mark) }
    for client in downClients {
      for problem in problems { client.error(problem) }
      client.finish(problems.isEmpty ? 0 : 1)
    }
    downClients = []
    if isOutdated { await dismiss(patiently: true) }
    isOutdated = false
    life = nil
    set(.disconnected)
    rest()
  }

  private func down(_ client: ControlClient) {
    downClients.append(client)
    isStopping = true
    events?.yield(.stop(reason: 0))
    starting?.answer.give(.failure(CancellationError()))
  }

  /// It may have been taken away by others.
  func lookAtInterface() {
    if let tunnel, !tunnel.network.tun.isAttached { events?.yield(.interfaceGone) }
  }
}
