import Glibc
import KapeCommandLine
import KapeCrypto

/// Writes key material to standard output.
enum SecretOutput {
  /// False when not all of it could be written; what is wrong has been said then.
  static func write(_ content: borrowing SecretBuffer) -> Bool {
    let failure: Int32 = content.withBytes { bytes in
      bytes.withUnsafeBytes { bytes in
        var rest = UnsafeRawBufferPointer(bytes)
        while let start = rest.baseAddress, !rest.isEmpty {
          let written = Glibc.write(STDOUT_FILENO, start, rest.count)
          if written < 0 && errno == EINTR { continue }
          if written <= 0 { return errno }
          rest = UnsafeRawBufferPointer(rebasing: rest[written...])
        }
        return 0
      }
    }
    if failure != 0 { Console.error("standard output: \(String(cString: strerror(failure)))") }
    return failure == 0
  }

  /// As wg does, when a key goes to a file that everybody may read, write or execute.
  static func warnIfWorldAccessible() {
    var information = stat()
    guard fstat(STDOUT_FILENO, &information) == 0, information.st_mode & S_IFMT == S_IFREG,
      information.st_mode & S_IRWXO != 0
    else { return }
    Console.write(
      "Warning: writing to world accessible file.\nConsider setting the umask to 077 and trying again.\n",
      to: STDERR_FILENO)
  }
}
