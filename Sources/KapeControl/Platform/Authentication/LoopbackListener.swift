import Foundation
import KapeControl

/// Waits on a loopback address for the browser that comes back from the issuer (RFC 8252, section 7.3).
final class LoopbackListener: Sendable {
  /// What a browser may send before it is told to go, and for how long.
  private static let requestLimit = 16_384
  private static let requestDeadline = Duration.seconds(10)
  private static let connectionLimit = 16

  /// The redirect URL, with the port that is listened on.
  let redirectURL: URL
  private let descriptor: Descriptor
  private let reactor: Reactor

  /// nil when the redirect URL is not for a listener: another scheme, or another host than this machine.
  ///
  /// - Throws: `SystemError`, such as EADDRINUSE for a port that the settings name.
  init?(_ redirect: URL) throws {
    guard redirect.scheme?.lowercased() == "http", let host = redirect.host, LoopbackName.contains(host) else {
      return nil
    }
    let isIPv6 = host.contains(":")
    let listening = try Self.listen(isIPv6: isIPv6, port: UInt16(clamping: redirect.port ?? 0))
    guard var parts = URLComponents(url: redirect, resolvingAgainstBaseURL: false) else { return nil }
    parts.port = Int(try Self.port(of: listening))
    guard let url = parts.url else { return nil }
    redirectURL = url
    descriptor = listening
    reactor = try Reactor()
  }

  /// Answers browsers until its task is cancelled. `page` says what to show for a URL that one was sent to.
  func run(_ page: @escaping @Sendable (URL) async -> LoopbackPage) async {
    await withDiscardingTaskGroup { group in
      let open = Counter()
      while !Task.isCancelled {
        do { try await reactor.readable(descriptor.raw) } catch { break }
        while let client = UnixSocket.accept(descriptor) {
          // More at once are no browser's; what is accepted and dropped is closed.
          guard open.increment(upTo: Self.connectionLimit) else { continue }
          let raw = client.release()
          group.addTask {
            await self.serve(Descriptor(owning: raw), page)
            open.decrement()
          }
        }
      }
      group.cancelAll()
    }
  }

  private func serve(_ client: consuming Descriptor, _ page: @Sendable (URL) async -> LoopbackPage) async {
    guard let target = try? await requestTarget(client.raw) else { return }
    let answer: LoopbackPage
    if let url = URL(string: origin + target, encodingInvalidCharacters: false) {
      answer = await page(url)
    } else {
      answer = .notFound
    }
    try? await send(answer.response, to: client.raw)
    // A close with something unread would reset the connection, and the page with it.
    shutdown(client.raw, Int32(SHUT_WR))
    _ = try? await receive(client.raw, upTo: 1)
  }

  private var origin: String {
    let host = redirectURL.host ?? ""
    return "http://" + (host.contains(":") ? "[\(host)]" : host) + ":\(redirectURL.port ?? 0)"
  }

  /// The path and query of a GET; nil for anything else.
  private func requestTarget(_ client: Int32) async throws -> String? {
    var request: [UInt8] = []
    let end = Array("\r\n\r\n".utf8)
    while !request.suffix(1024).contains(end) {
      guard request.count < Self.requestLimit else { return nil }
      let piece = try await receive(client, upTo: 1024)
      guard !piece.isEmpty else { return nil }
      request += piece
    }
    let line = String(decoding: request.prefix { $0 != UInt8(ascii: "\r") }, as: UTF8.self)
    let words = line.split(separator: " ", omittingEmptySubsequences: false)
    guard words.count == 3, words[0] == "GET", words[1].hasPrefix("/"), words[2].hasPrefix("HTTP/1.") else {
      return nil
    }
    return String(words[1])
  }

  private func receive(_ client: Int32, upTo size: Int) async throws -> [UInt8] {
    try await reactor.readable(client, within: Self.requestDeadline)
    var bytes = [UInt8](repeating: 0, count: size)
    let count = read(client, &bytes, size)
    guard count >= 0 else { throw SystemError("read") }
    return Array(bytes.prefix(count))
  }

  private func send(_ text: String, to client: Int32) async throws {
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Foundation.send(client, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
      if count < 0 {
        guard errno == EAGAIN || errno == EINTR else { throw SystemError("send") }
        try await reactor.writable(client, within: Self.requestDeadline)
      } else {
        rest = rest.dropFirst(count)
      }
    }
  }

  private static func listen(isIPv6: Bool, port: UInt16) throws(SystemError) -> Descriptor {
    let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
    let raw = socket(isIPv6 ? AF_INET6 : AF_INET, kind, 0)
    guard raw >= 0 else { throw SystemError("socket") }
    let descriptor = Descriptor(owning: raw)
    var one: Int32 = 1
    setsockopt(raw, SOL_SOCKET, SO_REUSEADDR, &one, socklen_t(MemoryLayout<Int32>.size))
    let bound =
      if isIPv6 {
        withAddress(
          sockaddr_in6(
            sin6_family: sa_family_t(AF_INET6), sin6_port: port.bigEndian, sin6_flowinfo: 0,
            sin6_addr: in6addr_loopback,
            sin6_scope_id: 0)
        ) { bind(raw, $0, $1) }
      } else {
        withAddress(
          sockaddr_in(
            sin_family: sa_family_t(AF_INET), sin_port: port.bigEndian,
            sin_addr: in_addr(s_addr: INADDR_LOOPBACK.bigEndian), sin_zero: (0, 0, 0, 0, 0, 0, 0, 0))
        ) { bind(raw, $0, $1) }
      }
    guard bound == 0, Foundation.listen(raw, 16) == 0 else { throw SystemError("port \(port) of the redirect URL") }
    return descriptor
  }

  private static func withAddress<Address>(
    _ address: Address, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
  ) -> Int32 {
    withUnsafePointer(to: address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<Address>.size)) }
    }
  }

  private static func port(of listening: borrowing Descriptor) throws(SystemError) -> UInt16 {
    var address = sockaddr_in6()
    var size = socklen_t(MemoryLayout<sockaddr_in6>.size)
    let result = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(listening.raw, $0, &size) }
    }
    guard result == 0 else { throw SystemError("getsockname") }
    // The port is at the same place in both families.
    return UInt16(bigEndian: address.sin6_port)
  }
}
