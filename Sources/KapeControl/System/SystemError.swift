import Glibc

/// A system call that failed: what was tried, and the errno.
package struct SystemError: Error, Equatable, CustomStringConvertible {
  package var code: Int32
  package var operation: String

  package init(_ operation: String, code: Int32 = errno) {
    self.code = code
    self.operation = operation
  }

  package var description: String { operation + ": " + SystemError.text(of: code) }

  /// The C library's words for an errno.
  package static func text(of code: Int32) -> String {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 128) { buffer in
      guard let start = buffer.baseAddress else { return "error \(code)" }
      buffer.initialize(repeating: 0)
      guard strerror_r(code, start, buffer.count) == 0 else { return "error \(code)" }
      return String(cString: start)
    }
  }
}

/// Calls again when a signal came in between; nil when it failed with anything else (errno says why).
func retrying<Value: SignedInteger>(_ call: () -> Value) -> Value? {
  while true {
    let value = call()
    if value != -1 { return value }
    if errno != EINTR { return nil }
  }
}
