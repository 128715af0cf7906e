/// Something that a session waits for. Its result counts only while it is the session's current operation.
final class Operation {
  let id: UInt64
  var task: Task<Void, Never>?
  var timer: SessionTimer?

  init(id: UInt64) { self.id = id }
}

/// How an operation went.
enum Outcome<Success: Sendable>: Sendable {
  case done(Success)
  case failed(any Error)
  /// It took longer than it may; it may still be at it.
  case expired
}

extension KapeSessionController {
  /// Waits for `work`, and then goes on with `next`, unless something else has become the session's operation meanwhile.
  /// Gives the task that `work` runs in.
  @discardableResult
  func perform<Success: Sendable>(
    within limit: Duration?, _ work: @escaping @Sendable () async throws -> Success,
    then next: @escaping @Sendable (isolated KapeSessionController, Outcome<Success>) -> Void
  ) -> Task<Void, Never> {
    interrupt()
    nextOperation += 1
    let id = nextOperation
    let operation = Operation(id: id)
    self.operation = operation
    let task = environment.spawn {
      let outcome: Outcome<Success>
      do { outcome = .done(try await work()) } catch { outcome = .failed(error) }
      await self.complete(id, outcome, next)
    }
    operation.task = task
    if let limit {
      operation.timer = schedule(after: limit) { $0.complete(id, .expired, next) }
    }
    return task
  }

  private func complete<Success: Sendable>(
    _ id: UInt64, _ outcome: Outcome<Success>,
    _ next: @Sendable (isolated KapeSessionController, Outcome<Success>) -> Void
  ) {
    guard let operation, operation.id == id else { return }
    self.operation = nil
    operation.timer?.cancel()
    if case .expired = outcome { operation.task?.cancel() }
    next(self, outcome)
  }

  /// Waits no longer for what it waits for, and asks it to end.
  func interrupt() {
    guard let operation else { return }
    self.operation = nil
    operation.timer?.cancel()
    operation.task?.cancel()
  }

  /// Waits that long.
  func wait(_ delay: Duration, then next: @escaping @Sendable (isolated KapeSessionController) -> Void) {
    interrupt()
    nextOperation += 1
    let id = nextOperation
    let operation = Operation(id: id)
    self.operation = operation
    operation.timer = schedule(after: delay) { session in
      session.complete(id, Outcome<Never>.expired) { session, _ in next(session) }
    }
  }

  func schedule(
    after delay: Duration, _ body: @escaping @Sendable (isolated KapeSessionController) -> Void
  ) -> SessionTimer {
    environment.clock.schedule(after: delay) { [self] in
      environment.spawn { await self.run(body) }
    }
  }

  private func run(_ body: @Sendable (isolated KapeSessionController) -> Void) { body(self) }
}
