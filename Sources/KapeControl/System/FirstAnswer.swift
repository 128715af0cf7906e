import Synchronization

/// The first of several answers counts, whoever comes first: they or who waits for them.
final class FirstAnswer<Value: Sendable>: Sendable {
  private struct State {
    var continuation: CheckedContinuation<Value, any Error>?
    var result: Result<Value, any Error>?
    var isGiven = false
  }
  private let state = Mutex(State())

  func expect(_ continuation: CheckedContinuation<Value, any Error>) {
    let result = state.withLock { state in
      if state.result == nil { state.continuation = continuation }
      return state.result
    }
    if let result { continuation.resume(with: result) }
  }

  func give(_ result: Result<Value, any Error>) {
    let continuation: CheckedContinuation<Value, any Error>? = state.withLock { state in
      guard !state.isGiven else { return nil }
      state.isGiven = true
      if state.continuation == nil { state.result = result }
      return state.continuation
    }
    continuation?.resume(with: result)
  }
}
