import Glibc
import KapeControl
import KapeProtocols

/// A TCP socket that listens.
struct ListeningSocket: ~Copyable, Sendable {
  /// Where; the port is a real one.
  let address: SocketAddress
  private let descriptor: Descriptor

  /// Port 0: one that is free.
  init(_ wanted: SocketAddress) throws {
    let family = wanted.address.family == .ipv4 ? AF_INET : AF_INET6
    let raw = socket(
      family, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
    guard raw >= 0 else { throw SystemError("socket") }
    let made = Descriptor(owning: raw)
    var one: Int32 = 1
    let size = socklen_t(MemoryLayout<Int32>.size)
    setsockopt(raw, SOL_SOCKET, SO_REUSEADDR, &one, size)
    if family == AF_INET6 { setsockopt(raw, Int32(IPPROTO_IPV6), IPV6_V6ONLY, &one, size) }
    guard Self.withRaw(wanted, { bind(raw, $0, $1) }) == 0, listen(raw, 128) == 0 else {
      throw SystemError("\(wanted)")
    }
    address = SocketAddress(wanted.address, port: try Self.port(of: raw), scope: wanted.scope)
    descriptor = made
  }

  /// Gives the descriptor away.
  consuming func release() -> Int32 { descriptor.release() }

  private static func port(of socket: Int32) throws -> UInt16 {
    var storage = sockaddr_storage()
    var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let status = withUnsafeMutablePointer(to: &storage) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(socket, $0, &size) }
    }
    guard status == 0 else { throw SystemError("getsockname") }
    // The port is at the same place for both families.
    return withUnsafeBytes(of: &storage) { UInt16($0[2]) << 8 | UInt16($0[3]) }
  }

  private static func withRaw<Value>(
    _ address: SocketAddress, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Value
  ) -> Value {
    switch address.address.family {
    case .ipv4:
      var raw = sockaddr_in()
      raw.sin_family = sa_family_t(AF_INET)
      raw.sin_port = address.port.bigEndian
      address.address.withUnsafeBytes { bytes in
        withUnsafeMutableBytes(of: &raw.sin_addr) { $0.copyMemory(from: bytes) }
      }
      return withUnsafePointer(to: &raw) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<sockaddr_in>.size)) }
      }
    case .ipv6:
      var raw = sockaddr_in6()
      raw.sin6_family = sa_family_t(AF_INET6)
      raw.sin6_port = address.port.bigEndian
      raw.sin6_scope_id = address.scope
      address.address.withUnsafeBytes { bytes in
        withUnsafeMutableBytes(of: &raw.sin6_addr) { $0.copyMemory(from: bytes) }
      }
      return withUnsafePointer(to: &raw) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<sockaddr_in6>.size)) }
      }
    }
  }
}

extension IPAddress {
  /// Of a socket address of the C library.
  static func text(of raw: UnsafePointer<sockaddr>?) -> String {
    guard let raw else { return "unknown" }
    let address: IPAddress? =
      switch Int32(raw.pointee.sa_family) {
      case AF_INET:
        raw.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { raw in
          Swift.withUnsafeBytes(of: raw.pointee.sin_addr) { IPAddress(bytes: $0.bytes) }
        }
      case AF_INET6:
        raw.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) { raw in
          Swift.withUnsafeBytes(of: raw.pointee.sin6_addr) { IPAddress(bytes: $0.bytes) }
        }
      default: nil
      }
    return address.map { "\($0)" } ?? "unknown"
  }
}
