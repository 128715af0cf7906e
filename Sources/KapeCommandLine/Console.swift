import Glibc

/// What a person reads: results on standard output, everything else on standard error.
package enum Console {
  package static func out(_ text: String) { write(text + "\n", to: STDOUT_FILENO) }
  package static func error(_ text: String) { write("kape: " + text + "\n", to: STDERR_FILENO) }

  /// Writes what a command was asked for; a result that did not arrive whole is a failure, and said to be one.
  package static func result(_ text: String) -> ExitCode {
    if write(text, to: STDOUT_FILENO) { return .done }
    error("standard output: \(String(cString: strerror(errno)))")
    return .failed
  }

  /// False when not all of it could be written; `errno` tells why.
  @discardableResult
  package static func write(_ text: String, to descriptor: Int32) -> Bool {
    var text = text
    return text.withUTF8 { bytes in
      var rest = UnsafeRawBufferPointer(bytes)
      while let start = rest.baseAddress, !rest.isEmpty {
        let written = Glibc.write(descriptor, start, rest.count)
        if written < 0 && errno == EINTR { continue }
        if written <= 0 { return false }
        rest = UnsafeRawBufferPointer(rebasing: rest[written...])
      }
      return true
    }
  }

  /// Puts /dev/null where a standard stream is closed. A descriptor of ours would get its number otherwise, and what is
  /// meant for a person, or what a command of the configuration prints, would be written to it.
  package static func openClosedStreams() {
    for stream in [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO] where fcntl(stream, F_GETFD) < 0 {
      let null = open("/dev/null", O_RDWR)
      guard null >= 0, null != stream else { continue }
      dup2(null, stream)
      close(null)
    }
  }
}
