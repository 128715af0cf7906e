internal import CLinux
import Glibc
import Synchronization

/// The Unix socket on which a WireGuard interface is configured: /var/run/wireguard/NAME.sock, as `wg` expects it
/// (https://www.wireguard.com/xplatform/). Its file goes with it, as long as it is still ours.
package final class ConfigurationSocket: Sendable {
  package enum Failure: Error, Equatable {
    /// A process answers on it.
    case inUse(SocketHolder?)
    case system(SystemError)
  }

  package static let folder = "/var/run/wireguard"

  package static func path(of interface: String) -> String { folder + "/" + interface + ".sock" }

  package let path: String
  let descriptor: Descriptor
  /// inotify on the folder; nil where the user has no instance left (128 by default): then it is looked at.
  private let watch: FolderWatch?
  private let identity: FileIdentity
  /// Held so that one client can be served when no other descriptor is left.
  private let spare = Mutex<Int32?>(nil)

  /// Makes the socket, only for its owner (0600; the folder 0755). One that nobody answers on is replaced.
  package convenience init(interface: String) throws(Failure) {
    do {
      try makeFolder(Self.folder)
    } catch { throw .system(error) }
    // Two that start at once must not take each other's new file for a stale one.
    let lock = open(Self.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard lock >= 0 else { throw .system(SystemError(Self.folder)) }
    let lockOwner = Descriptor(owning: lock)
    guard retrying({ flock(lockOwner.raw, LOCK_EX) }) != nil else { throw .system(SystemError("flock")) }

    let path = Self.path(of: interface)
    let descriptor = try Self.makeSocket()
    var bound = Self.with(path) { bind(descriptor.raw, $0, $1) }
    if bound != 0 && errno == EADDRINUSE {
      try Self.removeStale(path)
      bound = Self.with(path) { bind(descriptor.raw, $0, $1) }
    }
    guard bound == 0, listen(descriptor.raw, SOMAXCONN) == 0 else { throw .system(SystemError(path)) }
    try self.init(path: path, listening: descriptor)
  }

  /// Takes over a socket that listens already; its path is its own, or that of `interface` when it has none.
  package convenience init(adopting raw: Int32, interface: String) throws(Failure) {
    let descriptor = Descriptor(owning: raw)
    do {
      try descriptor.setNonBlocking()
      try descriptor.setCloseOnExec()
    } catch { throw .system(error) }
    let path = Self.pathOfSocket(descriptor) ?? Self.path(of: interface)
    try self.init(path: path, listening: descriptor)
  }

  private init(path: String, listening descriptor: consuming Descriptor) throws(Failure) {
    self.path = path
    self.descriptor = descriptor
    watch = FolderWatch(parentOf: path)
    // After the watch, so that no removal goes unseen.
    guard let identity = FileIdentity(path) else { throw .system(SystemError(path)) }
    self.identity = identity
    guard takeSpare() else { throw .system(SystemError("a spare descriptor")) }
  }

  deinit {
    unlinkIfOurs()
    if let last = spare.withLock({ $0 }) { close(last) }
  }

  /// Removes the file; the socket listens on for those who are connected. Not when another took its place.
  package func unlinkIfOurs() {
    if isPresent { unlink(path) }
  }

  package var isPresent: Bool { FileIdentity(path) == identity }

  /// Returns when the file was removed or replaced.
  package func removed(_ reactor: Reactor) async throws {
    while isPresent {
      if let watch {
        try await watch.changed(reactor)
      } else {
        try await Task.sleep(for: .seconds(1))
      }
    }
  }

  /// The next client, non-blocking.
  func accept(_ reactor: Reactor) async throws -> Int32 {
    while true {
      takeSpare()
      try await reactor.readable(descriptor.raw)
      if let client = retrying({ clinux_accept(descriptor.raw) }) { return client }
      switch errno {
      case EAGAIN, ECONNABORTED: continue
      case EMFILE, ENFILE:
        let failure = SystemError("accept")
        guard releaseSpare() else { throw failure }
        if let client = retrying({ clinux_accept(descriptor.raw) }) { return client }
        guard errno == EAGAIN || errno == ECONNABORTED else { throw failure }
      default: throw SystemError("accept")
      }
    }
  }

  @discardableResult
  private func takeSpare() -> Bool {
    let listening = descriptor.raw
    return spare.withLock { spare in
      if spare != nil { return true }
      let copy = fcntl(listening, F_DUPFD_CLOEXEC, 0)
      guard copy >= 0 else { return false }
      spare = copy
      return true
    }
  }

  private func releaseSpare() -> Bool {
    spare.withLock { spare in
      guard let copy = spare else { return false }
      close(copy)
      spare = nil
      return true
    }
  }

  private static func makeSocket() throws(Failure) -> Descriptor {
    let raw = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
    guard raw >= 0 else { throw .system(SystemError("socket(AF_UNIX)")) }
    let descriptor = Descriptor(owning: raw)
    // The file takes its mode from the socket: so there is no moment when others may connect, and no umask to change.
    guard fchmod(raw, 0o600) == 0 else { throw .system(SystemError("fchmod")) }
    return descriptor
  }

  private static func removeStale(_ path: String) throws(Failure) {
    let probe = try makeSocket()
    if with(path, { connect(probe.raw, $0, $1) }) == 0 { throw .inUse(SocketHolder.behind(probe)) }
    switch errno {
    case ECONNREFUSED: break
    case ENOENT: return
    case EAGAIN: throw .inUse(nil)
    default: throw .system(SystemError(path))
    }
    guard unlink(path) == 0 || errno == ENOENT else { throw .system(SystemError(path)) }
  }

  /// Who answers on the socket of an interface, if anyone does.
  package static func holder(of interface: String) -> SocketHolder? {
    guard let probe = try? makeSocket(), with(path(of: interface), { connect(probe.raw, $0, $1) }) == 0 else {
      return nil
    }
    return SocketHolder.behind(probe)
  }

  private static func with(_ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let fits = withUnsafeMutableBytes(of: &address.sun_path) { target in
      guard path.utf8.count < target.count else { return false }
      target.copyBytes(from: path.utf8)
      return true
    }
    guard fits else {
      errno = ENAMETOOLONG
      return -1
    }
    return withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<sockaddr_un>.size)) }
    }
  }

  private static func pathOfSocket(_ descriptor: borrowing Descriptor) -> String? {
    var address = sockaddr_un()
    var size = socklen_t(MemoryLayout<sockaddr_un>.size)
    let raw = descriptor.raw
    let result = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(raw, $0, &size) }
    }
    guard result == 0, Int32(address.sun_family) == AF_UNIX else { return nil }
    let path = withUnsafeBytes(of: address.sun_path) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    return path.hasPrefix("/") ? path : nil
  }
}

/// Which file it is, whatever its name.
private struct FileIdentity: Equatable {
  var device: dev_t
  var inode: ino_t

  init?(_ path: String) {
    var information = stat()
    guard lstat(path, &information) == 0 else { return nil }
    device = information.st_dev
    inode = information.st_ino
  }
}

/// Makes a folder of mode 0755, and those above it.
private func makeFolder(_ path: String) throws(SystemError) {
  var end = path.startIndex
  while end < path.endIndex {
    end = path[path.index(after: end)...].firstIndex(of: "/") ?? path.endIndex
    let part = String(path[..<end])
    guard mkdir(part, 0o755) == 0 || errno == EEXIST else { throw SystemError(part) }
  }
}
