internal import CLibSSL
import Glibc

/// TLS over TCP: the server is checked before anything is sent. For one thread, which blocks SIGPIPE: the library writes
/// without MSG_NOSIGNAL.
final class TLSStream: ByteStream {
  private let socket: OwnedDescriptor
  private let stop: StopSignal
  private let ssl: OpaquePointer
  private var isConnected = false
  private var isWhole = true

  init(_ socket: OwnedDescriptor, host: String, trust: TLSTrust, stop: StopSignal) throws {
    let context = try trust.makeContext()
    // The connection has a reference of its own.
    defer { SSL_CTX_free(context) }
    guard let ssl = SSL_new(context) else { throw TLSFailure.cause(else: "no connection") }
    self.socket = socket
    self.stop = stop
    self.ssl = ssl
    guard SSL_set_fd(ssl, socket.raw) == 1 else { throw TLSFailure.cause(else: "no socket") }
    let isAddress = Self.isAddress(host)
    if !isAddress, clibssl_set_server_name(ssl, host) != 1 { throw TLSFailure.cause(else: "no such host name") }
    try trust.expect(host, isAddress: isAddress, of: ssl)
    try repeatedly { SSL_connect(ssl) }
    isConnected = true
    try trust.check(ssl)
  }

  deinit {
    // Tells the other side once, without waiting; after a failure it must not.
    if isWhole { SSL_shutdown(ssl) }
    ERR_clear_error()
    SSL_free(ssl)
  }

  func write(_ bytes: UnsafeRawBufferPointer) throws {
    guard !bytes.isEmpty else { return }
    var written = 0
    try repeatedly { SSL_write_ex(ssl, bytes.baseAddress, bytes.count, &written) }
  }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
    var count = 0
    let ended = try repeatedly { SSL_read_ex(ssl, buffer.baseAddress, buffer.count, &count) }
    return ended ? 0 : count
  }

  /// Whether the other side has ended properly.
  @discardableResult private func repeatedly(_ call: () -> Int32) throws -> Bool {
    while true {
      ERR_clear_error()
      errno = 0
      let result = call()
      if result > 0 { return false }
      let code = errno
      switch SSL_get_error(ssl, result) {
      case SSL_ERROR_WANT_READ: try stop.waitToRead(socket.raw)
      case SSL_ERROR_WANT_WRITE: try stop.waitToWrite(socket.raw)
      case SSL_ERROR_ZERO_RETURN: return true
      case let kind:
        isWhole = false
        throw cause(kind, code)
      }
    }
  }

  private func cause(_ kind: Int32, _ code: Int32) -> KapeHTTPError.Cause {
    let verdict = SSL_get_verify_result(ssl)
    if verdict != X509_V_OK, !isConnected {
      return .certificateRefused(String(cString: X509_verify_cert_error_string(verdict)))
    }
    if kind == SSL_ERROR_SYSCALL {
      let reason = code == 0 ? "closed by the server" : systemText(code)
      return isConnected ? .connectionLost(reason) : .tls(reason)
    }
    let failure = TLSFailure.cause(else: "closed by the server")
    if isConnected, case .tls(let reason) = failure { return .connectionLost(reason) }
    return failure
  }

  private static func isAddress(_ host: String) -> Bool {
    var address = in6_addr()
    return inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1
  }
}
