import Glibc

/// A connection to a server, for one thread. Calls wait; `CancellationError` when it was stopped meanwhile.
protocol ByteStream: AnyObject {
  /// Sends all of it.
  func write(_ bytes: UnsafeRawBufferPointer) throws
  /// What came next, at least one byte; 0 when the other side has ended properly.
  func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int
}

/// TCP without anything.
final class PlainStream: ByteStream {
  private let socket: OwnedDescriptor
  private let stop: StopSignal

  init(_ socket: OwnedDescriptor, stop: StopSignal) {
    self.socket = socket
    self.stop = stop
  }

  func write(_ bytes: UnsafeRawBufferPointer) throws {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = send(
        socket.raw, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count, Int32(MSG_NOSIGNAL))
      if count >= 0 {
        rest = rest.dropFirst(count)
      } else if errno == EAGAIN {
        try stop.waitToWrite(socket.raw)
      } else if errno != EINTR {
        throw KapeHTTPError.Cause.connectionLost(systemText(errno))
      }
    }
  }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
    while true {
      let count = recv(socket.raw, buffer.baseAddress, buffer.count, 0)
      if count >= 0 { return count }
      if errno == EAGAIN {
        try stop.waitToRead(socket.raw)
      } else if errno != EINTR {
        throw KapeHTTPError.Cause.connectionLost(systemText(errno))
      }
    }
  }
}
