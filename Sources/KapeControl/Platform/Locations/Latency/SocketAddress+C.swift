import Foundation
import KapeProtocols

extension SocketAddress {
  /// As system calls take it.
  func withSockaddr<Result>(_ body: (UnsafePointer<sockaddr>, socklen_t) throws -> Result) rethrows -> Result {
    switch address.family {
    case .ipv4:
      var storage = sockaddr_in()
      storage.sin_family = sa_family_t(AF_INET)
      storage.sin_port = port.bigEndian
      withUnsafeMutableBytes(of: &storage.sin_addr) { target in address.withUnsafeBytes { target.copyBytes(from: $0) } }
      return try Self.with(storage, body)
    case .ipv6:
      var storage = sockaddr_in6()
      storage.sin6_family = sa_family_t(AF_INET6)
      storage.sin6_port = port.bigEndian
      storage.sin6_scope_id = scope
      withUnsafeMutableBytes(of: &storage.sin6_addr) { target in address.withUnsafeBytes { target.copyBytes(from: $0) }
      }
      return try Self.with(storage, body)
    }
  }

  private static func with<Storage, Result>(
    _ storage: Storage, _ body: (UnsafePointer<sockaddr>, socklen_t) throws -> Result
  ) rethrows -> Result {
    try withUnsafePointer(to: storage) { pointer in
      try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        try body($0, socklen_t(MemoryLayout<Storage>.size))
      }
    }
  }
}

extension IPAddress {
  var domain: Int32 { family == .ipv4 ? AF_INET : AF_INET6 }
}
