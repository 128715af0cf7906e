import Synchronization

extension TaskEnvironment {
  /// The result of `work`, or nil when it has none after `limit`. Then, and when the caller is cancelled, it is cancelled,
  /// but may take as long as it likes: nobody waits. What it gives or throws too late goes to `late`.
  package func bounded<Success: Sendable>(
    _ limit: Duration, late: @escaping @Sendable (Result<Success, any Error>) async -> Void = { _ in },
    _ work: @escaping @Sendable () async throws -> Success
  ) async throws -> Success? {
    let race = Race<Success>()
    let task = spawn {
      let result: Result<Success, any Error>
      do { result = .success(try await work()) } catch { result = .failure(error) }
      if !race.finish(result.map(Optional.some)) { await late(result) }
    }
    let timer = clock.schedule(after: limit) {
      if race.finish(.success(nil)) { task.cancel() }
    }
    defer { timer.cancel() }
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { race.wait($0) }
    } onCancel: {
      if race.finish(.failure(CancellationError())) { task.cancel() }
    }
  }
}

/// The first result counts.
private final class Race<Success: Sendable>: Sendable {
  private enum State {
    case running
    case waiting(CheckedContinuation<Success?, any Error>)
    case finished(Result<Success?, any Error>)
    case taken
  }
  private let state = Mutex(State.running)

  func wait(_ continuation: CheckedContinuation<Success?, any Error>) {
    let result: Result<Success?, any Error>? = state.withLock { state in
      if case .finished(let result) = state {
        state = .taken
        return result
      }
      state = .waiting(continuation)
      return nil
    }
    if let result { continuation.resume(with: result) }
  }

  /// False: there was a result already.
  func finish(_ result: Result<Success?, any Error>) -> Bool {
    let (isFirst, continuation): (Bool, CheckedContinuation<Success?, any Error>?) = state.withLock { state in
      switch state {
      case .running:
        state = .finished(result)
        return (true, nil)
      case .waiting(let continuation):
        state = .taken
        return (true, continuation)
      case .finished, .taken: return (false, nil)
      }
    }
    continuation?.resume(with: result)
    return isFirst
  }
}
