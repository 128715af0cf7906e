import Glibc

/// Key material for Wireshark (its WireGuard keylog form), appended to a file that only its owner can read. Whoever has
/// that file can read the traffic: it is written only when asked for.
package final class KeyLog: Sendable {
  private let file: Descriptor

  package init(path: String) throws(SystemError) {
    // Without O_NONBLOCK a named pipe that nobody reads would hold up the start.
    let raw = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600)
    guard raw >= 0 else { throw SystemError(path) }
    file = Descriptor(owning: raw)
    // A device is not ours to close to others.
    var information = stat()
    guard fstat(raw, &information) == 0 else { throw SystemError(path) }
    guard information.st_mode & S_IFMT == S_IFREG else {
      throw SystemError("\(path), which is no regular file", code: EINVAL)
    }
    // A file that was there already keeps its content, but not its readers.
    guard fchmod(raw, 0o600) == 0 else { throw SystemError(path) }
  }

  /// One line in one write, so that two tunnels may share a file. Called on the worker's thread, some lines a handshake.
  func append(_ line: UnsafeRawBufferPointer) {
    var newline: UInt8 = 0x0A
    withUnsafeMutablePointer(to: &newline) { newline in
      withUnsafeTemporaryAllocation(of: iovec.self, capacity: 2) { parts in
        parts[0] = iovec(iov_base: UnsafeMutableRawPointer(mutating: line.baseAddress), iov_len: line.count)
        parts[1] = iovec(iov_base: UnsafeMutableRawPointer(newline), iov_len: 1)
        _ = writev(file.raw, parts.baseAddress, 2)
      }
    }
  }
}
