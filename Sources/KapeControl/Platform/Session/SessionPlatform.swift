import Synchronization

/// The platform's calls of a session, one at a time and in order: one that has not returned holds up those after it.
/// Whoever waits for one has a deadline.
final class SessionPlatform: Sendable {
  private let tunnel: (any SystemTunnel)?
  private let reasserting: (any ReassertingController)?
  private let logger: any PacketTunnelLogger
  private let environment: SessionEnvironment
  private let state = Mutex(State())

  private struct State {
    var last: Task<Result<Void, any Error>, Never>?
    var wantsReasserting = false
    var saidReasserting = false
    var isSaying = false
  }

  init(
    tunnel: (any SystemTunnel)?, reasserting: (any ReassertingController)?, logger: any PacketTunnelLogger,
    environment: SessionEnvironment
  ) {
    self.tunnel = tunnel
    self.reasserting = reasserting
    self.logger = logger
    self.environment = environment
  }

  typealias Call = Task<Result<Void, any Error>, Never>

  func raiseLock() -> Call {
    inTurn { try await $0.raiseNetworkLock() }
  }

  /// Interface and lock go.
  func close() -> Call {
    inTurn { tunnel in
      await tunnel.close()
      await tunnel.dropNetworkLock()
    }
  }

  private func inTurn(_ call: @escaping @Sendable (any SystemTunnel) async throws -> Void) -> Call {
    state.withLock { state in
      let previous = state.last
      let task = environment.spawn { [tunnel] () -> Result<Void, any Error> in
        _ = await previous?.value
        guard let tunnel else { return .success(()) }
        do { return .success(try await call(tunnel)) } catch { return .failure(error) }
      }
      state.last = task
      return task
    }
  }

  /// Tells the flag, in order; of several changes that come while a call is under way, the last.
  func setReasserting(_ value: Bool) {
    guard let reasserting else { return }
    let begins = state.withLock { state in
      state.wantsReasserting = value
      guard !state.isSaying, state.wantsReasserting != state.saidReasserting else { return false }
      state.isSaying = true
      return true
    }
    guard begins else { return }
    environment.spawn { [self] in
      while let value = nextReasserting() {
        let isDone: Void? = try? await environment.bounded(environment.policy.platformDeadline) {
          await reasserting.setReasserting(value)
        }
        if isDone == nil { logger.warning("[session] the platform did not take reasserting = \(value) in time") }
      }
    }
  }

  private func nextReasserting() -> Bool? {
    state.withLock { state in
      guard state.wantsReasserting != state.saidReasserting else {
        state.isSaying = false
        return nil
      }
      state.saidReasserting = state.wantsReasserting
      return state.saidReasserting
    }
  }
}
