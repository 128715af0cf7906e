/// Where tasks run, and by what time. Tests give their own.
package struct TaskEnvironment: Sendable {
  package var clock: any SessionClock
  /// Nil: where all tasks do.
  package var executor: (any TaskExecutor)?
  /// For one call of the platform.
  package var platformDeadline = Duration.seconds(10)

  package init(clock: any SessionClock = SystemSessionClock(), executor: (any TaskExecutor)? = nil) {
    self.clock = clock
    self.executor = executor
  }

  @discardableResult
  package func spawn<Success: Sendable>(_ body: @escaping @Sendable () async -> Success) -> Task<Success, Never> {
    Task(executorPreference: executor, operation: body)
  }

  /// Throws `CancellationError` when the caller is cancelled before.
  package func sleep(for delay: Duration) async throws {
    let signal = Signal<Void>()
    let timer = clock.schedule(after: delay) { signal.fire(.success(())) }
    defer { timer.cancel() }
    try await signal.wait()
  }
}
