extension KapeSessionController {
  /// Begins a session and returns once it is connected for the first time. While one is under way, waits for that one;
  /// while one goes down, for its end first.
  ///
  /// Throws `CancellationError` when it is stopped before, or when the caller is cancelled (which stops it, unless others
  /// wait too), and a `PacketTunnelError` when trying again could not help: no controller (`protocolNotBundled`), unusable
  /// settings, nobody signed in, no subscription, or the start's deadline. All other failures are tried again, and shown
  /// as the last error meanwhile.
  public func start() async throws {
    while case .disconnecting = activity { try await wait(for: stopWaiters) }
    try Task.checkCancellation()
    if case .idle = activity {
      guard !slots.isEmpty else {
        state.lastError = .protocolNotBundled
        state.endCause = .protocolNotBundled
        throw PacketTunnelError.protocolNotBundled
      }
      begin()
    } else if wasConnected {
      return
    }
    try await wait(for: startWaiters) { session in
      if session.startWaiters.isEmpty, !session.wasConnected { session.disconnect(.cancelled) }
    }
  }

  private func begin() {
    logger.info("[session] start")
    queue = []
    queueIsRound = false
    failures = 0
    attemptFailures = 0
    shortConnections = 0
    attemptError = nil
    wasConnected = false
    lockIsRaised = false
    reportedGenerators = []
    pathInUse = nil
    lastPathAction = nil
    analytics.sessionDidBegin(environment.selection())
    state = with(SessionState()) { $0.status = .connecting }
    analytics.connectionDidBegin(.initial)
    armStartDeadline()
    watchPath()
    raiseLock()
  }

  func armStartDeadline() {
    startTimer?.cancel()
    startTimer = nil
    guard let limit = environment.policy.startDeadline, !wasConnected else { return }
    startTimer = schedule(after: limit) { $0.startDeadlinePassed() }
  }

  private func startDeadlinePassed() {
    guard activity.isRunning, !wasConnected, !isPaused else { return }
    logger.error("[session] nothing connected in time")
    let last = attemptError ?? state.lastError
    disconnect(.startDeadlinePassed, error: .startDeadlinePassed(lastError: last))
  }

  /// Everything that comes before the first connection, and after a pause: nothing leaves until the lock is there.
  func raiseLock() {
    activity = .raisingLock
    let call = platform.raiseLock()
    perform(within: environment.policy.platformDeadline) {
      try await call.value.get()
    } then: { session, outcome in
      session.lockWasRaised(outcome)
    }
  }

  private func lockWasRaised(_ outcome: Outcome<Void>) {
    if let reason = beginning {
      beginning = nil
      analytics.connectionDidBegin(reason)
      state.status = .reconnecting
      platform.setReasserting(wasConnected)
    }
    resumeWaiters.resume()
    switch outcome {
    case .done:
      lockIsRaised = true
      proceed()
    case .failed(let error):
      lockFailed(loggable(error))
    case .expired:
      lockFailed("the system did not hold traffic back in time")
    }
  }

  private func lockFailed(_ text: String) {
    logger.error("[session] \(text)")
    state.lastError = .tunnelSetupFailed(text)
    backOff()
  }
}

func with<Value>(_ value: Value, _ change: (inout Value) -> Void) -> Value {
  var value = value
  change(&value)
  return value
}
