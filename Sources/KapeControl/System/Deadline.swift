/// Something did not answer in time.
package struct DeadlineExceeded: Error, Equatable, CustomStringConvertible {
  /// What was waited for.
  package var what: String
  package var limit: Duration

  package var description: String { "\(what) did not answer within \(limit)" }
}

/// Waits for `work` no longer than `limit`, whether or not it heeds its cancellation: what never returns is left behind,
/// and who waited goes on. A cancelled caller goes on at once.
package func within<Value: Sendable>(
  _ limit: Duration, of clock: any Clock<Duration>, _ what: String,
  _ work: @escaping @Sendable () async throws -> Value
) async throws -> Value {
  let answer = FirstAnswer<Value>()
  let worker = Task {
    do { answer.give(.success(try await work())) } catch { answer.give(.failure(error)) }
  }
  let alarm = Task {
    try await clock.sleep(for: limit)
    answer.give(.failure(DeadlineExceeded(what: what, limit: limit)))
  }
  defer {
    worker.cancel()
    alarm.cancel()
  }
  return try await withTaskCancellationHandler {
    try await withCheckedThrowingContinuation { answer.expect($0) }
  } onCancel: {
    answer.give(.failure(CancellationError()))
  }
}
