import Synchronization

/// Something that happens once, and that several may wait for.
final class Signal<Value: Sendable>: Sendable {
  private struct State {
    var result: Result<Value, any Error>?
    var waiting: [UInt64: CheckedContinuation<Value, any Error>] = [:]
    var next: UInt64 = 0
    var cancelled: Set<UInt64> = []
  }
  private let state = Mutex(State())

  /// The first counts.
  func fire(_ result: Result<Value, any Error>) {
    let waiting = state.withLock { state in
      guard state.result == nil else { return [UInt64: CheckedContinuation<Value, any Error>]() }
      state.result = result
      defer { state.waiting = [:] }
      return state.waiting
    }
    for continuation in waiting.values { continuation.resume(with: result) }
  }

  /// Throws `CancellationError` when the caller is cancelled before.
  func wait() async throws -> Value {
    let id = state.withLock { state in
      state.next += 1
      return state.next
    }
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let result: Result<Value, any Error>? = state.withLock { state in
          if state.cancelled.remove(id) != nil { return .failure(CancellationError()) }
          if let result = state.result { return result }
          state.waiting[id] = continuation
          return nil
        }
        if let result { continuation.resume(with: result) }
      }
    } onCancel: {
      let continuation = state.withLock { state in
        let continuation = state.waiting.removeValue(forKey: id)
        if continuation == nil { state.cancelled.insert(id) }
        return continuation
      }
      continuation?.resume(throwing: CancellationError())
    }
  }
}
