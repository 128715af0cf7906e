import Glibc

/// That there is one kaped only: a lock on a file beside its socket, which goes with the process.
final class DaemonLock: Sendable {
  private static var path: String { RunDirectory.base + "/kaped.lock" }
  private let file: Descriptor

  /// EWOULDBLOCK: another has it.
  init() throws(SystemError) {
    try Files.makeFolders(RunDirectory.base, mode: 0o755)
    // Everybody has to get to the socket, whatever the umask took from it.
    var information = stat()
    guard stat(RunDirectory.base, &information) == 0,
      chmod(RunDirectory.base, information.st_mode & 0o7777 | 0o555) == 0
    else { throw SystemError(RunDirectory.base) }
    let raw = open(Self.path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o644)
    guard raw >= 0 else { throw SystemError(Self.path) }
    let opened = Descriptor(owning: raw)
    guard retrying({ flock(raw, LOCK_EX | LOCK_NB) }) != nil, ftruncate(raw, 0) == 0 else {
      throw SystemError(Self.path)
    }
    try Files.write(Array("\(getpid())\n".utf8), to: opened, Self.path)
    file = opened
  }

  static var holder: Int32 {
    let text = ((try? Files.text(path)) ?? nil) ?? ""
    return Int32(text.split(separator: "\n").first ?? "") ?? 0
  }
}
