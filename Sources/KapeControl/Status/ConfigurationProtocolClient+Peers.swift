import Glibc
package import KapeCrypto
package import KapeProtocols

extension ConfigurationProtocolClient {
  /// What is to be done to one peer.
  package enum PeerChange: Sendable {
    case remove(PublicKey)
    /// Adds it, or changes it if it is there; `allowedIPs` take the place of those that it has.
    case set(PublicKey, PresharedKey, allowedIPs: [IPPrefix])
  }

  package enum Failure: Error, Equatable, CustomStringConvertible {
    /// Nobody answers on the socket.
    case unanswered
    /// The errno that the interface answered with; what came before the fault may be done.
    case refused(Int32)

    package var description: String {
      switch self {
      case .unanswered: "nobody answers on the interface's configuration socket"
      case .refused(let code): "the interface refused the change: \(SystemError.text(of: code))"
      }
    }
  }

  /// Makes changes to an interface, in their order. Returns the process that made them. Blocks for up to 5 s.
  @discardableResult
  package static func apply(_ changes: [PeerChange], at socketPath: String) throws(Failure) -> Int32 {
    var request = SecretBuffer(capacity: 64 + changes.count * 256)
    request.append("set=1\n")
    for change in changes { append(change, to: &request) }
    request.append("\n")
    guard let socket = try? UnixSocket.connect(socketPath) else { throw .unanswered }
    guard request.withBytes({ send($0, on: socket) }) else { throw .unanswered }
    let code = try answer(on: socket)
    guard code == 0 else { throw .refused(code) }
    return UnixSocket.peer(socket)?.process ?? 0
  }

  private static func append(_ change: PeerChange, to request: inout SecretBuffer) {
    request.append("public_key=")
    switch change {
    case .remove(let key):
      request.append(hex: key)
      request.append("\nremove=true\n")
    case .set(let key, let presharedKey, let allowedIPs):
      request.append(hex: key)
      request.append("\npreshared_key=")
      request.append(hex: presharedKey)
      request.append("\nreplace_allowed_ips=true\n")
      for prefix in allowedIPs { request.append("allowed_ip=\(prefix)\n") }
    }
  }

  private static func send(_ bytes: RawSpan, on socket: borrowing Descriptor) -> Bool {
    bytes.withUnsafeBytes { bytes in
      var rest = bytes[...]
      while !rest.isEmpty {
        let part = UnsafeRawBufferPointer(rebasing: rest)
        if let sent = retrying({ Glibc.send(socket.raw, part.baseAddress, part.count, Int32(MSG_NOSIGNAL)) }) {
          rest = rest.dropFirst(sent)
        } else {
          guard errno == EAGAIN, wait(for: socket, Int16(POLLOUT)) else { return false }
        }
      }
      return true
    }
  }

  /// The answer is "errno=N" and a blank line.
  private static func answer(on socket: borrowing Descriptor) throws(Failure) -> Int32 {
    var text: [UInt8] = []
    while text.count < 256, wait(for: socket, Int16(POLLIN)) {
      var part = [UInt8](repeating: 0, count: 256)
      guard let size = retrying({ recv(socket.raw, &part, part.count, 0) }), size > 0 else { break }
      text += part[..<size]
      guard String(decoding: text, as: UTF8.self).hasSuffix("\n\n") else { continue }
      let line = String(decoding: text.dropLast(2), as: UTF8.self)
      guard line.hasPrefix("errno="), let code = Int32(line.dropFirst(6)) else { break }
      return abs(code)
    }
    throw .unanswered
  }

  private static func wait(for socket: borrowing Descriptor, _ events: Int16) -> Bool {
    var waited = pollfd(fd: socket.raw, events: events, revents: 0)
    return poll(&waited, 1, deadline) == 1
  }
}
