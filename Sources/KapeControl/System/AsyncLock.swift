import Synchronization

/// One task at a time, in the order of arrival; waiting does not hold a thread. Not for long waits: it cannot be
/// cancelled.
final class AsyncLock: Sendable {
  private struct State {
    var isHeld = false
    var waiting: [CheckedContinuation<Void, Never>] = []
  }
  private let state = Mutex(State())

  nonisolated(nonsending) func withLock<Result, Failure: Error>(
    _ body: nonisolated(nonsending) () async throws(Failure) -> Result
  ) async throws(Failure) -> Result {
    await acquire()
    defer { release() }
    return try await body()
  }

  private nonisolated(nonsending) func acquire() async {
    await withCheckedContinuation { continuation in
      let free = state.withLock { state in
        if state.isHeld {
          state.waiting.append(continuation)
          return false
        }
        state.isHeld = true
        return true
      }
      if free { continuation.resume() }
    }
  }

  private func release() {
    let next: CheckedContinuation<Void, Never>? = state.withLock { state in
      if state.waiting.isEmpty {
        state.isHeld = false
        return nil
      }
      return state.waiting.removeFirst()
    }
    next?.resume()
  }
}
