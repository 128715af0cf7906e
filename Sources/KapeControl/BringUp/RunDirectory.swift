internal import CLinux
import Glibc

/// The folder of one tunnel's state, /run/kape/NAME, and the lock that says who has the name. The lock lives as long as
/// the process; the folder until everything in it is put back.
package final class RunDirectory: Sendable {
  package static var base: String {
    let given = variable("KAPE_RUN_DIR") ?? ""
    return given.isEmpty ? "/run/kape" : given
  }

  package static func path(of name: String) -> String { base + "/" + name }
  package static func journal(of name: String) -> String { path(of: name) + "/journal" }
  package static func socket(of name: String) -> String { path(of: name) + "/control.sock" }

  package enum Failure: Error, CustomStringConvertible {
    /// Another process has the name.
    case held(by: Int32)
    case system(SystemError)

    package var description: String {
      switch self {
      case .held(let process): "process \(process) has it"
      case .system(let error): "\(error)"
      }
    }
  }

  package let name: String
  package var path: String { Self.path(of: name) }
  private let lock: Descriptor

  /// Makes the folder (0700) and takes the lock, without waiting for it.
  package init(_ name: String) throws(Failure) {
    self.name = name
    while true {
      try Self.makeFolders(Self.base, mode: 0o755)
      try Self.makeFolders(Self.path(of: name), mode: 0o700)
      var information = stat()
      let path = Self.path(of: name)
      guard lstat(path, &information) == 0, information.st_mode & S_IFMT == S_IFDIR, information.st_uid == geteuid()
      else { throw .system(SystemError(path, code: EPERM)) }
      guard chmod(path, 0o700) == 0 else { throw .system(SystemError(path)) }
      let file = path + "/lock"
      let raw = open(file, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
      if raw < 0 && errno == ENOENT { continue }
      guard raw >= 0 else {
        let error = SystemError(file)
        rmdir(path)
        throw .system(error)
      }
      let taken = Descriptor(owning: raw)
      if !Self.lock(taken) {
        guard errno == EWOULDBLOCK else { throw .system(SystemError(file)) }
        throw .held(by: Self.process(in: file))
      }
      // Its holder may have removed the folder between the two calls: then this lock is worth nothing.
      var opened = stat()
      var present = stat()
      guard fstat(taken.raw, &opened) == 0, lstat(file, &present) == 0, opened.st_ino == present.st_ino else {
        continue
      }
      do throws(SystemError) {
        guard ftruncate(taken.raw, 0) == 0 else { throw SystemError(file) }
        try Files.write(Array("\(getpid())\n".utf8), to: taken, file)
      } catch {
        // A full disk. As everywhere, the lock goes while it is held.
        unlink(file)
        rmdir(path)
        throw .system(error)
      }
      lock = taken
      return
    }
  }

  /// Tries for a tenth of a second: who only asks for the holder has the lock for a moment.
  private static func lock(_ file: borrowing Descriptor) -> Bool {
    for attempt in 0..<6 {
      if retrying({ flock(file.raw, LOCK_EX | LOCK_NB) }) != nil { return true }
      if errno != EWOULDBLOCK || attempt == 5 { return false }
      usleep(20_000)
    }
    return false
  }

  /// Who has a name, if anyone has.
  package static func holder(of name: String) -> Int32? {
    let file = path(of: name) + "/lock"
    let raw = open(file, O_RDONLY | O_CLOEXEC)
    guard raw >= 0 else { return nil }
    let lock = Descriptor(owning: raw)
    guard retrying({ flock(lock.raw, LOCK_SH | LOCK_NB) }) == nil, errno == EWOULDBLOCK else { return nil }
    return process(in: file)
  }

  /// For choices that tunnels which start at the same moment have to make one after the other: holds them up until it is
  /// given to `end`. -1: another has kept it for two seconds; go on without.
  package static func takeTurn() -> Int32 {
    let folder = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    for _ in 0..<100 where folder >= 0 {
      if retrying({ flock(folder, LOCK_EX | LOCK_NB) }) != nil { return folder }
      guard errno == EWOULDBLOCK else { break }
      usleep(20_000)
    }
    if folder >= 0 { close(folder) }
    return -1
  }

  package static func end(_ turn: Int32) {
    if turn >= 0 { close(turn) }
  }

  /// Names that there is state of, held or left behind.
  package static func names() -> [String] {
    Files.names(in: base).filter { ConfigurationFile.isInterfaceName($0) && Files.exists(journal(of: $0)) }
  }

  /// Removes the folder with all that is in it. The name is free once this object is gone too.
  package func remove() {
    for file in Files.names(in: path) where file != "lock" { unlink(path + "/" + file) }
    unlink(path + "/lock")
    rmdir(path)
  }

  private static func process(in file: String) -> Int32 {
    let text = (try? Files.text(file)) ?? ""
    return Int32(text.split(separator: "\n").first ?? "") ?? 0
  }

  private static func makeFolders(_ path: String, mode: mode_t) throws(Failure) {
    do throws(SystemError) { try Files.makeFolders(path, mode: mode) } catch { throw .system(error) }
  }
}
