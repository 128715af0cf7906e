import Synchronization

/// Tasks that wait for something to happen.
final class Waiters: Sendable {
  private struct State {
    var waiting: [UInt64: CheckedContinuation<Void, any Error>] = [:]
    var next: UInt64 = 0
  }
  private let state = Mutex(State())

  var isEmpty: Bool { state.withLock { $0.waiting.isEmpty } }

  func makeIdentifier() -> UInt64 {
    state.withLock { state in
      state.next += 1
      return state.next
    }
  }

  func add(_ id: UInt64, _ continuation: CheckedContinuation<Void, any Error>) {
    state.withLock { $0.waiting[id] = continuation }
  }

  func remove(_ id: UInt64, throwing error: any Error) {
    state.withLock { $0.waiting.removeValue(forKey: id) }?.resume(throwing: error)
  }

  /// In the order in which they came.
  func resume(with result: Result<Void, any Error> = .success(())) {
    let all = state.withLock { state in
      defer { state.waiting = [:] }
      return state.waiting.sorted { $0.key < $1.key }
    }
    for (_, continuation) in all { continuation.resume(with: result) }
  }
}

extension KapeSessionController {
  /// Waits for `waiters` to be resumed. A caller that is cancelled gets a `CancellationError`, and `abandoned` is called.
  func wait(
    for waiters: Waiters, abandoned: @escaping @Sendable (isolated KapeSessionController) -> Void = { _ in }
  ) async throws {
    let id = waiters.makeIdentifier()
    try await withTaskCancellationHandler {
      // On the actor from here to the continuation: a cancellation comes before it or after it is there.
      try await withCheckedThrowingContinuation { waiters.add(id, $0) }
    } onCancel: {
      environment.spawn { await self.abandon(waiters, id, abandoned) }
    }
  }

  private func abandon(
    _ waiters: Waiters, _ id: UInt64, _ abandoned: @Sendable (isolated KapeSessionController) -> Void
  ) {
    waiters.remove(id, throwing: CancellationError())
    abandoned(self)
  }
}
