import Glibc
import Synchronization

/// SIGTERM, SIGINT and SIGHUP as something to wait for. By handlers, since the main thread of a program that waits in
/// Swift's run loop has nothing blocked, so that signalfd(2) would miss what it takes. One for the whole process.
package final class TerminationSignals: Sendable {
  private let pipe: Pipe

  package init() throws(SystemError) {
    pipe = try Pipe()
    try pipe.reading.setNonBlocking()
    try pipe.writing.setNonBlocking()
    signalTarget.store(pipe.writing.raw, ordering: .sequentiallyConsistent)
    for number in [SIGTERM, SIGINT, SIGHUP] {
      var action = sigaction()
      guard sigaction(number, nil, &action) == 0 else { throw SystemError("sigaction") }
      // Who started us with nohup means it.
      let handler = unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
      if number == SIGHUP && handler == Self.ignored { continue }
      action = sigaction()
      action.__sigaction_handler.sa_handler = noteSignal
      action.sa_flags = SA_RESTART
      guard sigaction(number, &action, nil) == 0 else { throw SystemError("sigaction") }
    }
  }

  deinit {
    signalTarget.store(-1, ordering: .sequentiallyConsistent)
    for number in [SIGTERM, SIGINT, SIGHUP] { signal(number, SIG_DFL) }
  }

  private static let ignored = 1

  /// The number of the next signal.
  package func next(_ reactor: Reactor) async throws -> Int32 {
    while true {
      try await reactor.readable(pipe.reading.raw)
      var number: UInt8 = 0
      if let size = retrying({ read(pipe.reading.raw, &number, 1) }), size == 1 { return Int32(number) }
    }
  }
}

/// Where the handler writes; -1: nowhere.
private let signalTarget = Atomic<Int32>(-1)

/// Runs between any two instructions: only an atomic load and write(2).
private func noteSignal(_ number: Int32) {
  let saved = errno
  let target = signalTarget.load(ordering: .sequentiallyConsistent)
  var byte = UInt8(truncatingIfNeeded: number)
  if target >= 0 { _ = write(target, &byte, 1) }
  errno = saved
}
