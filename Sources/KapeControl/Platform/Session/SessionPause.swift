import Foundation

extension KapeSessionController {
  /// No longer: what is added to the time of day has to stay a time of day.
  static let longestPause = Duration.seconds(100 * 366 * 86_400)

  /// Takes the tunnel down for that long, with the session kept: traffic goes past it. A further pause only moves the end.
  /// A negative or zero duration ends at once. Returns when the interface is gone. Without a session, nothing.
  public func pause(for duration: Duration) async {
    guard activity.isRunning else {
      logger.info("[session] pause without a session: ignored")
      return
    }
    let duration = min(max(duration, .zero), Self.longestPause)
    let end = environment.clock.wallTime.addingTimeInterval(duration / .seconds(1))
    state.pausedUntil = end
    armPause()
    if !isPaused {
      isPaused = true
      beginPause()
    }
    guard case .pausing = activity else { return }
    try? await wait(for: pauseWaiters)
  }

  private func beginPause() {
    beginning = nil
    resumeWaiters.resume()
    // It was resumed while still going down: then nothing has to be done again.
    if case .pausing = activity { return }
    logger.info("[session] paused")
    let slot = activity.slot
    interrupt()
    startTimer?.cancel()
    startTimer = nil
    pathTimer?.cancel()
    pathTimer = nil
    connectionIsDown()
    state.status = .paused
    platform.setReasserting(false)
    analytics.connectionDidEnd(.paused)
    activity = .pausing(slot)
    guard let slot else { return closeForPause() }
    let unwinding = beginUnwinding(slot)
    perform(within: environment.policy.stopDeadline) {
      await unwinding.value
    } then: { session, outcome in
      if case .expired = outcome { session.giveUp(slot) }
      session.closeForPause()
    }
  }

  private func closeForPause() {
    lockIsRaised = false
    activity = .pausing(nil)
    let call = platform.close()
    perform(within: environment.policy.platformDeadline) {
      try await call.value.get()
    } then: { session, outcome in
      session.closedForPause(outcome)
    }
  }

  private func closedForPause(_ outcome: Outcome<Void>) {
    if case .expired = outcome {
      logger.error("[session] the system did not close the interface in time")
      state.lastError = .tunnelSetupFailed("the system did not close the interface in time")
    }
    activity = .paused
    pauseWaiters.resume()
    if !isPaused { beginResume() }
  }

  /// Ends a pause and returns when the session is on its way again. Without a pause, nothing.
  public func resume() async {
    guard isPaused else { return }
    endPause()
    guard beginning != nil else { return }
    try? await wait(for: resumeWaiters)
  }

  /// Ends a pause whose time is over by the clock on the wall: after sleep, for one.
  public func resumeIfDue() async {
    guard isDue else { return }
    await resume()
  }

  private var isDue: Bool {
    guard isPaused, let end = state.pausedUntil else { return false }
    return environment.clock.wallTime >= end
  }

  func endPause() {
    guard isPaused else { return }
    isPaused = false
    pauseTimer?.cancel()
    pauseTimer = nil
    state.pausedUntil = nil
    beginning = .resumed
    if case .paused = activity { beginResume() }
  }

  private func beginResume() {
    logger.info("[session] resumed")
    armStartDeadline()
    raiseLock()
  }

  private func armPause() {
    pauseTimer?.cancel()
    guard let end = state.pausedUntil else { return }
    let left = Duration.seconds(max(0, end.timeIntervalSince(environment.clock.wallTime)))
    pauseTimer = schedule(after: left) { $0.pauseTimerFired() }
  }

  private func pauseTimerFired() {
    guard isPaused else { return }
    // The clock on the wall decides; it may have been set back.
    if isDue { endPause() } else { armPause() }
  }
}
