import Glibc
import KapeControl

/// Runs what blocks on a thread of its own, and waits for it without holding up a thread of the cooperative pool. A
/// cancelled task stops it by the signal.
func onCallThread<Value: Sendable>(
  stop: StopSignal, _ body: @escaping @Sendable () throws -> Value
) async throws -> Value {
  try await withTaskCancellationHandler {
    try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Value, any Error>) in
      do {
        // The resolver's modules are what needs most of the stack.
        try startThread(stackSize: 512 * 1024) {
          blockBrokenPipe()
          continuation.resume(with: Result(catching: body))
        }
      } catch {
        continuation.resume(throwing: KapeHTTPError.Cause.notReached("no thread: \(error)"))
      }
    }
  } onCancel: {
    stop.stop()
  }
}

/// A write to a connection that is gone is an error here, not the end of the process. The signal is the thread's own and
/// goes with it.
private func blockBrokenPipe() {
  var signals = sigset_t()
  sigemptyset(&signals)
  sigaddset(&signals, SIGPIPE)
  pthread_sigmask(SIG_BLOCK, &signals, nil)
}
