import Glibc

/// Where a client's sockets come from.
public struct KapeHTTPSockets: Sendable {
  /// A stream socket of that family (AF_INET or AF_INET6), neither bound nor connected. The client closes it.
  let make: @Sendable (_ family: Int32) async throws -> Int32

  /// Plain ones of this process.
  public static let system = KapeHTTPSockets { try socket($0, mark: nil) }

  /// Ones that carry a mark (SO_MARK), by which rules lead them past a tunnel. This needs CAP_NET_ADMIN; a socket that
  /// cannot be marked is not used.
  public static func marked(_ mark: UInt32) -> KapeHTTPSockets {
    KapeHTTPSockets { try socket($0, mark: mark) }
  }

  /// Ones that somebody else makes: a stream socket of the family that is given (AF_INET or AF_INET6), neither bound nor
  /// connected. The client closes it.
  public static func made(by make: @escaping @Sendable (_ family: Int32) async throws -> Int32) -> KapeHTTPSockets {
    KapeHTTPSockets(make: make)
  }

  private static func socket(_ family: Int32, mark: UInt32?) throws -> Int32 {
    let made = Glibc.socket(family, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard made >= 0 else { throw KapeHTTPError.Cause.notReached("no socket: \(systemText(errno))") }
    guard var mark else { return made }
    guard setsockopt(made, SOL_SOCKET, SO_MARK, &mark, socklen_t(MemoryLayout<UInt32>.size)) == 0 else {
      let code = errno
      close(made)
      throw KapeHTTPError.Cause.notReached("no socket past the tunnel: SO_MARK: \(systemText(code))")
    }
    return made
  }
}

/// A descriptor that is closed with the object.
final class OwnedDescriptor: Sendable {
  let raw: Int32

  init(_ raw: Int32) { self.raw = raw }
  deinit { close(raw) }
}
