extension KapeSessionController {
  /// Asks the generator anew and reconnects in place: the interface stays until the next connection has its own. Returns
  /// once connected; ends a pause.
  ///
  /// Throws what stood in the way (the generator's error, the last one of a round, or the deadline), while the session
  /// goes on trying, and `CancellationError` when it is stopped. Without a session, `PacketTunnelError.cancelled`.
  public func switchLocation() async throws {
    guard activity.isRunning else {
      logger.info("[session] switch without a session: ignored")
      throw PacketTunnelError.cancelled
    }
    logger.info("[session] switch")
    queue = []
    failures = 0
    attemptFailures = 0
    attemptError = nil
    shortConnections = 0
    let selection = environment.selection()
    if isPaused {
      analytics.select(selection)
      endPause()
    } else if beginning == nil {
      analytics.connectionDidRestart(.userInitiated, .initial, selection: selection)
      restart()
    } else {
      analytics.select(selection)
    }
    let deadline = schedule(after: environment.policy.switchDeadline) { $0.switchDeadlinePassed() }
    defer { deadline.cancel() }
    try await wait(for: switchWaiters)
  }

  private func switchDeadlinePassed() {
    switchWaiters.resume(
      with: .failure(PacketTunnelError.startDeadlinePassed(lastError: attemptError ?? state.lastError)))
  }

  /// Drops the connection and goes on to the next configuration, in the same connection as far as reports go. Ends a
  /// pause. Without a connection that is up, nothing.
  public func reconnect() async {
    if isPaused { return await resume() }
    guard case .connected = activity else {
      logger.info("[session] reconnect without a connection: ignored")
      return
    }
    logger.info("[session] reconnect")
    restart()
  }

  /// From whatever it is at, towards a connection.
  func restart() {
    if wasConnected {
      connectionIsDown()
      state.status = .reconnecting
      platform.setReasserting(true)
    }
    // It goes on by itself once the lock is there.
    if case .raisingLock = activity { return }
    guard let slot = activity.slot else { return proceed() }
    interrupt()
    unwind(slot) { $0.proceed() }
  }
}
