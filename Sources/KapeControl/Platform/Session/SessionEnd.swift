extension KapeSessionController {
  /// Ends the session and returns when it is down, after 2 s and the last events at the latest. Without one, nothing.
  public func stop() async {
    await stop(.userInitiated)
  }

  package func stop(_ cause: KapeSessionEndCause) async {
    disconnect(cause)
    guard case .disconnecting = activity else { return }
    try? await wait(for: stopWaiters)
  }

  /// Begins to take the session down. `error` is why, when it was not asked for.
  func disconnect(_ cause: KapeSessionEndCause, error: PacketTunnelError? = nil) {
    guard activity.isRunning else { return }
    logger.info("[session] stop: \(cause.rawValue)")
    let slot = activity.slot
    interrupt()
    activity = .disconnecting
    for timer in [startTimer, pauseTimer, statisticsTimer, pathTimer] { timer?.cancel() }
    (startTimer, pauseTimer, statisticsTimer, pathTimer) = (nil, nil, nil, nil)
    pathTask?.cancel()
    pathTask = nil
    isPaused = false
    beginning = nil
    state = with(state) {
      $0.status = .disconnecting
      $0.pausedUntil = nil
      if let error { $0.lastError = error }
    }
    platform.setReasserting(false)
    startWaiters.resume(with: .failure(error ?? CancellationError()))
    switchWaiters.resume(with: .failure(error ?? CancellationError()))
    pauseWaiters.resume()
    resumeWaiters.resume()

    let end = environment.clock.now + environment.policy.stopDeadline
    let unwinding = slot.map { beginUnwinding($0) }
    // The last quarter is the platform's.
    perform(within: environment.policy.stopDeadline * 0.75) {
      await unwinding?.value
    } then: { session, outcome in
      if case .expired = outcome, let slot { session.giveUp(slot) }
      session.closeInterface(cause, error, until: end)
    }
  }

  private func closeInterface(_ cause: KapeSessionEndCause, _ error: PacketTunnelError?, until end: Duration) {
    analytics.connectionDidEnd(error.map { $0.connectionEndReason } ?? .userInitiated)
    let call = platform.close()
    perform(within: max(.zero, end - environment.clock.now)) {
      try await call.value.get()
    } then: { session, outcome in
      if case .expired = outcome { session.logger.error("[session] the system did not close the interface in time") }
      session.ended(cause, error)
    }
  }

  private func ended(_ cause: KapeSessionEndCause, _ error: PacketTunnelError?) {
    connectionIsDown()
    state = with(state) {
      $0.status = .disconnected
      $0.endCause = cause
    }
    let isForWantOfEndpoints = cause == .startDeadlinePassed
    analytics.sessionDidEnd(isForWantOfEndpoints ? .noEndpointsAvailable : .userInitiated)
    queue = []
    let analytics = analytics
    let limit = environment.policy.flushDeadline
    perform(within: nil) {
      await analytics.flush(within: limit)
    } then: { session, _ in
      session.activity = .idle
      session.logger.info("[session] ended: \(cause.rawValue)")
      session.stopWaiters.resume()
    }
  }
}

extension PacketTunnelError {
  fileprivate var connectionEndReason: PacketTunnelConnectionDisconnectReason {
    if case .startDeadlinePassed = self { .noEndpointsAvailable } else { .connectionError }
  }
}

extension KapeSessionController.Activity {
  /// The controller that has something to take down.
  var slot: Int? {
    switch self {
    case .connecting(let slot), .connected(let slot), .unwinding(let slot): slot
    case .pausing(let slot): slot
    case .idle, .raisingLock, .waitingForNetwork, .pulling, .backingOff, .paused, .disconnecting: nil
    }
  }
}
