import Glibc
package import KapeControl

/// Where a backend keeps what outlives it, for its owner only (0700). docs/backend.md names the files.
package struct StateDirectory: Sendable {
  package let path: String

  package enum Failure: Error, CustomStringConvertible {
    /// Another process works with it.
    case inUse(String)
    case system(SystemError)
    /// Others may read or change what is in it.
    case notPrivate(String)

    package var description: String {
      switch self {
      case .inUse(let path): "\(path) is in use by another backend: end that, or take another --state"
      case .system(let error): "\(error)"
      case .notPrivate(let path): "\(path) must be a folder of yours that is closed to others: chmod 700 \(path)"
      }
    }
  }

  /// Makes it unless it is there.
  package init(_ path: String) throws {
    self.path = path
    do {
      try Files.makeFolders(path, mode: 0o700)
    } catch { throw Failure.system(error) }
    var information = stat()
    guard stat(path, &information) == 0 else { throw Failure.system(SystemError(path)) }
    guard information.st_uid == geteuid(), information.st_mode & 0o077 == 0, information.st_mode & S_IFMT == S_IFDIR
    else { throw Failure.notPrivate(path) }
  }

  /// Held for as long as the backend runs; the system lets go of it when the process ends in any way.
  package func lock() throws -> Descriptor {
    let raw = open(file("lock"), O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard raw >= 0 else { throw Failure.system(SystemError(file("lock"))) }
    let lock = Descriptor(owning: raw)
    guard flock(lock.raw, LOCK_EX | LOCK_NB) == 0 else {
      throw errno == EWOULDBLOCK ? Failure.inUse(path) : Failure.system(SystemError(file("lock")))
    }
    return lock
  }

  package func file(_ name: String) -> String { path + "/" + name }

  package var database: String { file("backend.db") }
  package var settings: String { file("settings.json") }
  var credentials: String { file("credentials.json") }
  var verifierKey: String { file("verifier.key") }
  package var controlSocket: String { file("control.sock") }

  /// A file of it, whole; nil when it is not there.
  func read(_ name: String) throws -> [UInt8]? { try Files.read(file(name), limit: 16 << 20) }

  /// Puts a file in place of an older one at once, on the disk before the call returns.
  package func write(_ bytes: [UInt8], to name: String) throws {
    let new = file(name + ".new")
    try Files.write(bytes, to: new)
    try Self.synchronize(new, O_RDONLY)
    guard rename(new, file(name)) == 0 else { throw SystemError(file(name)) }
    try Self.synchronize(path, O_RDONLY | O_DIRECTORY)
  }

  private static func synchronize(_ path: String, _ flags: Int32) throws {
    let raw = open(path, flags | O_CLOEXEC)
    guard raw >= 0 else { throw SystemError(path) }
    let file = Descriptor(owning: raw)
    guard fsync(file.raw) == 0 else { throw SystemError(path) }
  }
}
