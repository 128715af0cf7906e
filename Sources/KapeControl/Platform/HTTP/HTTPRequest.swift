import Foundation
import KapeCrypto

/// What is asked.
struct HTTPRequest: Sendable {
  enum Method: String, Sendable {
    case get = "GET"
    case post = "POST"
  }

  var method: Method
  var target: HTTPTarget
  var headers: [String: String]
  var body: Data?

  /// These are made by the client: a second one would let two readers see two requests.
  private static let own: Set = [
    "host", "content-length", "transfer-encoding", "connection", "te", "upgrade", "expect",
  ]

  init(
    _ method: Method, _ target: HTTPTarget, headers: [String: String], body: Data? = nil
  ) throws(KapeHTTPError) {
    self.method = method
    self.target = target
    self.headers = headers
    self.body = body
    for (name, value) in headers {
      let isName = !name.isEmpty && name.utf8.allSatisfy(\.isTokenCharacter)
      guard isName, !Self.own.contains(name.lowercased()) else {
        throw KapeHTTPError(
          host: target.name, cause: .badRequest(isName ? "\(name) is set by the client" : "a header's name"))
      }
      guard value.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == .tab }) else {
        throw KapeHTTPError(host: target.name, cause: .badRequest("a control character in \(name)"))
      }
    }
  }

  /// The bytes to send, which are wiped with the buffer: a token may be among them.
  func bytes() -> SecretBuffer {
    var buffer = SecretBuffer(capacity: 1024 + (body?.count ?? 0))
    buffer.append("\(method.rawValue) \(target.path) HTTP/1.1\r\nHost: \(target.authority)\r\n")
    buffer.append("Connection: close\r\n")
    if !headers.keys.contains(where: { $0.lowercased() == "user-agent" }) { buffer.append("User-Agent: Kape\r\n") }
    for (name, value) in headers.sorted(by: { $0.key < $1.key }) { buffer.append("\(name): \(value)\r\n") }
    if let body { buffer.append("Content-Length: \(body.count)\r\n") }
    buffer.append("\r\n")
    body?.withUnsafeBytes { bytes in
      guard !bytes.isEmpty else { return }
      buffer.append(bytes.bytes)
    }
    return buffer
  }
}
