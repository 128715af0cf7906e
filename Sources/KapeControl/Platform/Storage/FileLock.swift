import Foundation
import KapeControl

/// A lock among processes, and among the tasks of one: flock(2) on a file that stays. It ends with its holder, however
/// that ends.
package struct FileLock: Sendable {
  package let path: String
  /// How long to wait for others.
  package let patience: Duration

  package init(_ path: String, patience: Duration = .seconds(120)) {
    self.path = path
    self.patience = patience
  }

  /// Runs `body` while it holds the lock; waiting holds no thread of the cooperative pool. Its folder has to exist.
  ///
  /// - Throws: `SystemError`, with ETIMEDOUT when others keep the lock longer than `patience`; `CancellationError`; what
  ///   `body` throws.
  package func withLock<Result: Sendable>(
    _ body: nonisolated(nonsending) () async throws -> Result
  ) async throws -> Result {
    let raw = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard raw >= 0 else { throw SystemError(path) }
    let file = Descriptor(owning: raw)
    try await take(file.raw)
    return try await body()
  }

  /// Tries, at growing distances, up to 20 ms: flock has no deadline, and a thread that waits for it no end.
  private nonisolated(nonsending) func take(_ file: Int32) async throws {
    let clock = ContinuousClock()
    let end = clock.now + patience
    var pause = Duration.microseconds(500)
    while flock(file, LOCK_EX | LOCK_NB) != 0 {
      if errno == EINTR { continue }
      guard errno == EWOULDBLOCK else { throw SystemError(path) }
      guard clock.now < end else { throw SystemError(path, code: ETIMEDOUT) }
      try await Task.sleep(for: pause)
      pause = min(pause * 2, .milliseconds(20))
    }
  }
}
