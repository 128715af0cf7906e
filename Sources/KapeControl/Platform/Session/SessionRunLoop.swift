extension KapeSessionController {
  /// The next step towards a connection.
  func proceed() {
    while true {
      guard lockIsRaised else { return raiseLock() }
      guard path.isOnline else {
        logger.debug("[session] offline: waiting for the network")
        interrupt()
        activity = .waitingForNetwork
        return
      }
      guard !queue.isEmpty else { return askGenerator() }
      let configuration = queue.removeFirst()
      if let slot = slots.firstIndex(where: { $0.controller.accepts(configuration) }) {
        if !slots[slot].isBusy { return connect(slot, configuration) }
        let text = "\(slots[slot].name) does not return from its last connection"
        logger.error("[session] \(text)")
        attemptError = .tunnelSetupFailed(text)
      } else {
        logger.error("[session] no controller for \(type(of: configuration)): skipped")
        attemptError = .protocolNotBundled
      }
      attemptBegan = environment.clock.now
      if let delay = delayAfterFailure() { return backOff(delay) }
    }
  }

  // MARK: Generator

  private func askGenerator() {
    activity = .pulling
    pathInUse = path
    let previous = pull
    let call = GeneratorCall { _ in }
    let generator = generator
    pull = perform(within: environment.policy.generatorDeadline) {
      // One call at a time: one that was given up may still be at it.
      await previous?.value
      try Task.checkCancellation()
      return try await call.configurations(from: generator)
    } then: { session, outcome in
      session.generatorAnswered(outcome, call)
    }
  }

  private func generatorAnswered(_ outcome: Outcome<[any VpnConfiguration]>, _ call: GeneratorCall) {
    if let type = call.typeWithoutMethod, reportedGenerators.insert(type).inserted {
      logger.error(GeneratorCall.message(about: type))
    }
    switch outcome {
    case .done(let batch) where !batch.isEmpty:
      queue = batch
      queueIsRound = !call.isOneByOne
      proceed()
    case .done:
      logger.info("[session] the generator has nothing to connect to right now")
      failures += 1
      switchWaiters.resume(with: .failure(attemptError ?? PacketTunnelError.noConfiguration))
      backOff()
    case .failed(let error as TerminalStartError) where !wasConnected:
      logger.error("[session] \(loggable(error.error))")
      disconnect(error.error.cause, error: error.error)
    case .failed(let error):
      failed(PacketTunnelError(fromGenerator: error))
    case .expired:
      failed(.configurationFailed("the generator did not answer in time"))
    }
  }

  private func failed(_ error: PacketTunnelError) {
    logger.error("[session] \(loggable(error))")
    state.lastError = error
    failures += 1
    switchWaiters.resume(with: .failure(error))
    backOff()
  }

  /// Waits before the next try; offline, for the network instead.
  func backOff(_ delay: Duration? = nil) {
    guard path.isOnline else { return proceed() }
    let delay = delay ?? environment.policy.backoff.delay(failures: failures)
    logger.debug("[session] next try in \(delay)")
    activity = .backingOff
    wait(delay) { $0.proceed() }
  }

  // MARK: Attempts

  private func connect(_ slot: Int, _ configuration: any VpnConfiguration) {
    logger.info("[session] connecting by \(configuration.vpnProtocolName)")
    activity = .connecting(slot)
    attemptBegan = environment.clock.now
    pathInUse = path
    analytics.connectionWillConnect()
    let controller = slots[slot].controller
    let reporter = slots[slot].hasReporter ? nil : slots[slot].reporter
    slots[slot].hasReporter = true
    slots[slot].call = perform(within: environment.policy.connectDeadline) {
      if let reporter { await controller.setAttemptReporter(reporter) }
      try await controller.connect(toAny: configuration)
    } then: { session, outcome in
      session.attemptEnded(slot, configuration, outcome)
    }
  }

  private func attemptEnded(_ slot: Int, _ configuration: any VpnConfiguration, _ outcome: Outcome<Void>) {
    switch outcome {
    case .done:
      slots[slot].call = nil
      connected(slot, configuration)
    case .failed(let error):
      slots[slot].call = nil
      attemptFailed(PacketTunnelError(fromController: error))
    case .expired:
      // The attempt is over, whatever the controller still does about it.
      slots[slot].reporter.mute(.failed(.connectTimeout))
      unwind(slot) { $0.attemptFailed(.connectTimeout) }
    }
  }

  private func attemptFailed(_ error: PacketTunnelError) {
    logger.info("[session] attempt failed: \(loggable(error))")
    attemptError = error
    if let delay = delayAfterFailure() { backOff(delay) } else { proceed() }
  }

  /// How long to wait after a configuration that came to nothing; nil: on to the next at once.
  private func delayAfterFailure() -> Duration? {
    attemptFailures += 1
    guard queue.isEmpty, let error = attemptError else { return nil }
    // The whole round failed.
    state.lastError = error
    if queueIsRound {
      failures += 1
      switchWaiters.resume(with: .failure(error))
      return environment.policy.backoff.delay(failures: failures)
    }
    // One at a time it is the generator that knows when a round is over. Should it never say so, failures that come at
    // once must not become a busy loop.
    let excess = attemptFailures - environment.policy.failuresAtOnce
    guard excess > 0 else { return nil }
    let left = environment.policy.backoff.delay(failures: excess) - (environment.clock.now - attemptBegan)
    return left > .zero ? left : nil
  }

  // MARK: Connected

  private func connected(_ slot: Int, _ configuration: any VpnConfiguration) {
    logger.info("[session] connected by \(configuration.vpnProtocolName)")
    let endpoint = analytics.connectionDidConnect(configuration)
    activity = .connected(slot)
    failures = 0
    attemptFailures = 0
    attemptError = nil
    wasConnected = true
    connectedAt = environment.clock.now
    startTimer?.cancel()
    startTimer = nil
    state = with(state) {
      $0.status = .connected
      $0.connectedEndpoint = endpoint
      $0.connectedSince = environment.clock.wallTime
      $0.lastError = nil
    }
    platform.setReasserting(false)
    let controller = slots[slot].controller
    slots[slot].call = perform(within: nil) {
      await controller.runVPN()
    } then: { session, outcome in
      session.slots[slot].call = nil
      guard case .done(let error) = outcome else { return }
      session.connectionEnded(slot, error)
    }
    pollStatistics(controller, of: operation?.id)
    startWaiters.resume()
    switchWaiters.resume()
    lookAtPath()
  }

  private func connectionEnded(_ slot: Int, _ error: PacketTunnelError?) {
    if let error {
      logger.error("[session] the connection dropped: \(loggable(error))")
    } else {
      logger.info("[session] the connection ended")
    }
    connectionIsDown()
    state.status = .reconnecting
    platform.setReasserting(true)
    if error != nil { analytics.connectionDidRestart(.connectionError, .networkLoss) }
    let lasted = environment.clock.now - connectedAt
    shortConnections = lasted < environment.policy.shortConnection ? shortConnections + 1 : 0
    let excess = shortConnections - environment.policy.shortConnectionsAtOnce
    unwind(slot) { session in
      // An endpoint that accepts and drops at once is not to be asked without end.
      if excess > 0 {
        session.backOff(session.environment.policy.backoff.delay(failures: excess))
      } else {
        session.proceed()
      }
    }
  }

  /// Nothing of the connection is shown any more.
  func connectionIsDown() {
    statisticsTimer?.cancel()
    statisticsTimer = nil
    state = with(state) {
      $0.connectedEndpoint = nil
      $0.connectedSince = nil
      $0.dataUsage = PacketTunnelDataUsage(bytesReceived: 0, bytesSent: 0)
    }
  }

  private func pollStatistics(_ controller: any ConnectionController, of id: UInt64?) {
    statisticsTimer = environment.clock.schedule(after: environment.policy.statisticsInterval) { [self] in
      environment.spawn {
        let usage = await self.dataUsage(of: controller)
        await self.statistics(usage, controller, of: id)
      }
    }
  }

  private func statistics(_ usage: PacketTunnelDataUsage?, _ controller: any ConnectionController, of id: UInt64?) {
    guard case .connected = activity, operation?.id == id else { return }
    if let usage { state.dataUsage = usage }
    pollStatistics(controller, of: id)
  }

  // MARK: Taking down

  /// Takes down what the controller has, and goes on with `next` when that is done or has taken too long. A controller
  /// that takes too long is not used again before it is done.
  func unwind(_ slot: Int, then next: @escaping @Sendable (isolated KapeSessionController) -> Void) {
    activity = .unwinding(slot)
    let unwinding = beginUnwinding(slot)
    perform(within: environment.policy.stopDeadline) {
      await unwinding.value
    } then: { session, outcome in
      if case .expired = outcome { session.giveUp(slot) }
      next(session)
    }
  }

  /// Gives the task that ends when the controller is down.
  func beginUnwinding(_ slot: Int) -> Task<Void, Never> {
    if let unwinding = slots[slot].unwinding { return unwinding }
    let controller = slots[slot].controller
    let call = slots[slot].call
    call?.cancel()
    let task = environment.spawn {
      if let call {
        // Lets it return; cancelled it has been.
        await controller.stop()
        await call.value
      }
      await controller.stop()
      await self.unwound(slot)
    }
    slots[slot].unwinding = task
    return task
  }

  private func unwound(_ slot: Int) {
    slots[slot].call = nil
    slots[slot].unwinding = nil
    slots[slot].reporter.unmute()
  }

  func giveUp(_ slot: Int) {
    guard slots[slot].unwinding != nil else { return }
    logger.error("[session] \(slots[slot].name) did not stop in time")
    slots[slot].reporter.mute(.cancelled)
  }
}

extension PacketTunnelError {
  init(fromGenerator error: any Error) {
    switch error {
    case let error as PacketTunnelError: self = error
    case let error as TerminalStartError: self = error.error
    default: self = .configurationFailed(loggable(error))
    }
  }

  init(fromController error: any Error) {
    switch error {
    case let error as PacketTunnelError: self = error
    case is CancellationError: self = .cancelled
    default: self = .network(loggable(error))
    }
  }
}
