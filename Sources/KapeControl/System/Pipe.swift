internal import CLinux
import Glibc

/// Both ends of a pipe.
package struct Pipe: ~Copyable, Sendable {
  package let reading: Descriptor
  package let writing: Descriptor

  package init() throws(SystemError) {
    var ends: (Int32, Int32) = (-1, -1)
    let result = withUnsafeMutablePointer(to: &ends) {
      $0.withMemoryRebound(to: Int32.self, capacity: 2) { clinux_pipe($0) }
    }
    guard result == 0 else { throw SystemError("pipe") }
    reading = Descriptor(owning: ends.0)
    writing = Descriptor(owning: ends.1)
  }

  /// Closes the writing end, so that reading ends with the last other writer.
  package consuming func endingWriting() -> Descriptor { reading }
}
