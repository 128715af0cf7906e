internal import KapeProtocols

extension KapeSessionController {
  /// Follows the network for as long as the session is there.
  func watchPath() {
    pathTask?.cancel()
    path = NetworkPath()
    let paths = environment.network.paths()
    pathTask = environment.spawn {
      for await path in paths { await self.pathMayHaveChanged(path) }
    }
  }

  private func pathMayHaveChanged(_ new: NetworkPath) {
    guard activity.isRunning, new != path else { return }
    let old = path
    path = new
    logger.debug("[session] the network changed: \(new.isOnline ? "online" : "offline")")
    switch activity {
    case .waitingForNetwork:
      if new.isOnline { proceed() }
    case .backingOff:
      // Offline it waits for the network; with another network it does not wait at all.
      if !new.isOnline || !old.isOnline { proceed() } else { lookAtPath() }
    case .connected:
      lookAtPath()
    default: break
    }
  }

  /// Acts on another path, once it has settled: the kernel tells of one change in several messages, and of much that
  /// changes nothing.
  func lookAtPath() {
    pathTimer?.cancel()
    pathTimer = nil
    guard needsReconnection else { return }
    var delay = environment.policy.pathSettling
    if let last = lastPathAction {
      delay = max(delay, last + environment.policy.pathHoldDown - environment.clock.now)
    }
    pathTimer = schedule(after: delay) { $0.pathHasSettled() }
  }

  private var needsReconnection: Bool {
    guard path.isOnline, let inUse = pathInUse else { return false }
    switch activity {
    case .connected:
      return !path.isSame(as: inUse, towards: (state.connectedEndpoint?.host).flatMap { IPAddress($0) })
    case .backingOff:
      return path != inUse
    default: return false
    }
  }

  private func pathHasSettled() {
    pathTimer = nil
    guard needsReconnection else { return }
    lastPathAction = environment.clock.now
    pathInUse = path
    if case .backingOff = activity { return proceed() }
    logger.info("[session] another network: reconnecting")
    analytics.connectionDidRestart(.cancelled, .pathChange)
    restart()
  }
}
