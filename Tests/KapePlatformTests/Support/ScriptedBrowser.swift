import Foundation
import KapePlatform
import KapeTestSupport

/// Somebody with a browser: opens the page, signs in, and is sent back.
struct ScriptedBrowser: KapeAuthPresenter {
  let backend: ScriptedBackend
  var user = "u1"
  var change: @Sendable (inout [String: String]) -> Void = { _ in }
  /// How he gets back: nil, by a connection to the address.
  var comeBack: (@Sendable (URL) -> Void)?
  var seen: @Sendable (URL) -> Void = { _ in }

  func open(_ url: URL) async throws {
    seen(url)
    guard let back = backend.authorize(url, user: user, change: change) else { return }
    if let comeBack {
      comeBack(back)
    } else {
      _ = try await LoopbackClient.get(back)
    }
  }
}

/// A browser's part of a loopback redirect, over a real socket.
enum LoopbackClient {
  /// The whole answer.
  static func get(_ url: URL) async throws -> String {
    let target = (url.path.isEmpty ? "/" : url.path) + (url.query(percentEncoded: true).map { "?" + $0 } ?? "")
    return try await send(
      "GET \(target) HTTP/1.1\r\nHost: \(url.host ?? ""):\(url.port ?? 0)\r\nAccept: text/html\r\n\r\n",
      port: UInt16(url.port ?? 0), isIPv6: url.host?.contains(":") == true)
  }

  static func connect(port: UInt16, isIPv6: Bool = false) throws -> Int32 {
    let descriptor = socket(isIPv6 ? AF_INET6 : AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var timeout = timeval(tv_sec: 20, tv_usec: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
    var result: Int32
    if isIPv6 {
      var address = sockaddr_in6()
      (address.sin6_family, address.sin6_port, address.sin6_addr) = (
        sa_family_t(AF_INET6), port.bigEndian, in6addr_loopback
      )
      result = withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          Foundation.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in6>.size))
        }
      }
    } else {
      var address = sockaddr_in()
      (address.sin_family, address.sin_port) = (sa_family_t(AF_INET), port.bigEndian)
      address.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
      result = withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          Foundation.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
        }
      }
    }
    guard result == 0 else {
      close(descriptor)
      throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO)
    }
    return descriptor
  }

  /// With `isEnded` the sending side is shut after the text.
  static func send(
    _ text: String, port: UInt16, isIPv6: Bool = false, isEnded: Bool = false
  ) async throws -> String {
    try await blocking {
      let descriptor = try connect(port: port, isIPv6: isIPv6)
      defer { close(descriptor) }
      var bytes = Array(text.utf8)
      Foundation.send(descriptor, &bytes, bytes.count, Int32(MSG_NOSIGNAL))
      if isEnded { shutdown(descriptor, Int32(SHUT_WR)) }
      var answer: [UInt8] = []
      var buffer = [UInt8](repeating: 0, count: 4096)
      while case let count = recv(descriptor, &buffer, buffer.count, 0), count > 0 { answer += buffer[..<count] }
      return String(decoding: answer, as: UTF8.self)
    }
  }
}

/// Runs what blocks on a thread that is not of the cooperative pool.
func blocking<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
  try await withCheckedThrowingContinuation { continuation in
    Thread.detachNewThread { continuation.resume(with: Result(catching: body)) }
  }
}
