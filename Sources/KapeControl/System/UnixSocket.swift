internal import CLinux
import Glibc

/// Stream sockets with a path. Paths longer than the 107 bytes that an address holds work by way of their folder.
package enum UnixSocket {
  /// Listening, for those that `mode` lets write; a file that is there is removed first.
  package static func listen(_ path: String, mode: UInt32 = 0o600) throws(SystemError) -> Descriptor {
    let made = try make()
    // The file takes its mode from the socket, so that there is no moment when others may connect.
    guard fchmod(made.raw, mode) == 0 else { throw SystemError("fchmod") }
    try Files.remove(path)
    guard try withAddress(path, { bind(made.raw, $0, $1) }) == 0, Glibc.listen(made.raw, 128) == 0 else {
      throw SystemError(path)
    }
    // The umask has taken from it.
    guard mode == 0o600 || chmod(path, mode) == 0 else { throw SystemError(path) }
    return made
  }

  package static func connect(_ path: String) throws(SystemError) -> Descriptor {
    let made = try make()
    guard try withAddress(path, { Glibc.connect(made.raw, $0, $1) }) == 0 else { throw SystemError(path) }
    return made
  }

  package static func isAnswered(_ path: String) -> Bool {
    do {
      _ = try connect(path)
      return true
    } catch {
      return false
    }
  }

  /// Non-blocking, closed in other programs.
  package static func accept(_ listening: borrowing Descriptor) -> Descriptor? {
    guard let client = retrying({ Glibc.accept(listening.raw, nil, nil) }) else { return nil }
    let made = Descriptor(owning: client)
    guard fcntl(client, F_SETFD, FD_CLOEXEC) == 0, fcntl(client, F_SETFL, O_NONBLOCK) == 0 else { return nil }
    return made
  }

  /// Who is at the other end, as he was when he connected or listened; nil when the system does not tell.
  package static func peer(_ connected: borrowing Descriptor) -> PeerCredentials? {
    var credentials = clinux_credentials()
    var size = socklen_t(MemoryLayout<clinux_credentials>.size)
    guard getsockopt(connected.raw, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0, credentials.pid > 0 else {
      return nil
    }
    return PeerCredentials(process: credentials.pid, user: credentials.uid, group: credentials.gid)
  }

  /// Two ends of one connection, each closed in other programs.
  package static func pair() throws(SystemError) -> SocketPair {
    var ends: [Int32] = [-1, -1]
    guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0 else {
      throw SystemError("socketpair")
    }
    return SocketPair(first: Descriptor(owning: ends[0]), second: Descriptor(owning: ends[1]))
  }

  private static func make() throws(SystemError) -> Descriptor {
    let raw = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
    guard raw >= 0 else { throw SystemError("socket") }
    return Descriptor(owning: raw)
  }

  private static func withAddress(
    _ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
  ) throws(SystemError) -> Int32 {
    let slash = path.lastIndex(of: "/")
    let folder = open(
      slash.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard folder >= 0 else { throw SystemError(path) }
    let opened = Descriptor(owning: folder)
    let short = "/proc/self/fd/\(opened.raw)/" + path[(slash.map { path.index(after: $0) } ?? path.startIndex)...]
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let fits = withUnsafeMutableBytes(of: &address.sun_path) { target in
      guard short.utf8.count < target.count else { return false }
      target.copyBytes(from: short.utf8)
      return true
    }
    guard fits else { throw SystemError(path, code: ENAMETOOLONG) }
    return withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<sockaddr_un>.size)) }
    }
  }
}

/// A process and whose it is.
package struct PeerCredentials: Equatable, Sendable {
  package var process: Int32
  package var user: UInt32
  package var group: UInt32
}

package struct SocketPair: ~Copyable, Sendable {
  package let first: Descriptor
  package let second: Descriptor
}
