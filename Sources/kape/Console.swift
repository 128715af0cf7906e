import Glibc

/// What a person reads: results on standard output, everything else on standard error.
enum Console {
  static func out(_ text: String) { write(text + "\n", to: STDOUT_FILENO) }
  static func error(_ text: String) { write("kape: " + text + "\n", to: STDERR_FILENO) }

  static func write(_ text: String, to descriptor: Int32) {
    var text = text
    text.withUTF8 { bytes in
      var rest = UnsafeRawBufferPointer(bytes)
      while let start = rest.baseAddress, !rest.isEmpty {
        let written = Glibc.write(descriptor, start, rest.count)
        if written < 0 && errno == EINTR { continue }
        if written <= 0 { return }
        rest = UnsafeRawBufferPointer(rebasing: rest[written...])
      }
    }
  }
}
