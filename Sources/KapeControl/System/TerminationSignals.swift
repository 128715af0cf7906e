internal import CLinux
import Glibc

/// SIGTERM, SIGINT and SIGHUP as something to wait for. Made on the main thread before others are: threads take over
/// the mask of the one that starts them.
package final class TerminationSignals: Sendable {
  private let descriptor: Descriptor

  package init() throws(SystemError) {
    var set = sigset_t()
    sigemptyset(&set)
    for signal in [SIGTERM, SIGINT, SIGHUP] { sigaddset(&set, signal) }
    let result = pthread_sigmask(SIG_BLOCK, &set, nil)
    guard result == 0 else { throw SystemError("pthread_sigmask", code: result) }
    let raw = signalfd(-1, &set, Int32(SFD_CLOEXEC | SFD_NONBLOCK))
    guard raw >= 0 else { throw SystemError("signalfd") }
    descriptor = Descriptor(owning: raw)
  }

  /// The number of the next signal.
  package func next(_ reactor: Reactor) async throws -> Int32 {
    while true {
      try await reactor.readable(descriptor.raw)
      var info = signalfd_siginfo()
      if let size = retrying({ read(descriptor.raw, &info, MemoryLayout<signalfd_siginfo>.size) }),
        size == MemoryLayout<signalfd_siginfo>.size
      {
        return Int32(bitPattern: info.ssi_signo)
      }
    }
  }
}
