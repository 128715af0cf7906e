import Glibc

/// A file descriptor with one owner, closed when the owner goes.
package struct Descriptor: ~Copyable, Sendable {
  package let raw: Int32

  package init(owning raw: Int32) { self.raw = raw }

  deinit { close(raw) }

  /// Gives the descriptor away; it is not closed here.
  package consuming func release() -> Int32 {
    let raw = self.raw
    discard self
    return raw
  }

  package func setNonBlocking() throws(SystemError) {
    let flags = fcntl(raw, F_GETFL)
    guard flags >= 0, fcntl(raw, F_SETFL, flags | O_NONBLOCK) == 0 else { throw SystemError("fcntl") }
  }

  package func setCloseOnExec() throws(SystemError) {
    guard fcntl(raw, F_SETFD, FD_CLOEXEC) == 0 else { throw SystemError("fcntl") }
  }
}
