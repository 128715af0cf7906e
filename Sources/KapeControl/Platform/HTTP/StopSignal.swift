import Glibc
import KapeControl

/// Lets a thread that waits for a socket be stopped from elsewhere.
final class StopSignal: Sendable {
  private let pipe: Pipe

  init() throws(SystemError) {
    pipe = try Pipe()
  }

  /// Whoever waits stops, now or when it next waits. One byte is never too much for the pipe, and more are not needed.
  func stop() {
    _ = write(pipe.writing.raw, "x", 1)
  }

  /// Waits until one of the descriptors is ready for its events, or `milliseconds` have passed (-1: forever). Gives the
  /// indices of those that are.
  ///
  /// - Throws: `CancellationError` when it was stopped.
  func wait(for descriptors: [(raw: Int32, events: Int16)], milliseconds: Int32 = -1) throws -> [Int] {
    var all = descriptors.map { pollfd(fd: $0.raw, events: $0.events, revents: 0) }
    all.append(pollfd(fd: pipe.reading.raw, events: Int16(POLLIN), revents: 0))
    let count = poll(&all, nfds_t(all.count), milliseconds)
    guard count >= 0 || errno == EINTR else { throw KapeHTTPError.Cause.connectionLost("poll: \(systemText(errno))") }
    if count > 0, all[descriptors.count].revents != 0 { throw CancellationError() }
    return count > 0 ? descriptors.indices.filter { all[$0].revents != 0 } : []
  }

  func waitToRead(_ raw: Int32) throws {
    while try wait(for: [(raw, Int16(POLLIN))]).isEmpty {}
  }

  func waitToWrite(_ raw: Int32) throws {
    while try wait(for: [(raw, Int16(POLLOUT))]).isEmpty {}
  }
}
