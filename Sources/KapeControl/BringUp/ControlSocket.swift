import Glibc

/// The socket on which a running tunnel is asked things: one request a connection. A request is a line; the answer is
/// lines that begin with "1" (for standard output), "2" (something to tell the person) or "3" (output of a command, for
/// standard error as it is), and a last one, "0 CODE".
package enum ControlRequest: String, Sendable, CaseIterable {
  case statusText = "status text"
  case statusJSON = "status json"
  case save
  case down
}

/// One client of a running tunnel.
package final class ControlClient: Sendable {
  private let socket: Descriptor

  init(_ socket: consuming Descriptor) { self.socket = socket }

  package func out(_ text: String) { send("1", text) }
  package func error(_ text: String) { send("2", text) }
  /// Lines, each with its end.
  package func raw(_ text: String) { send("3", text.hasSuffix("\n") ? String(text.dropLast()) : text) }

  package func finish(_ code: Int32) {
    send("0", " \(code)")
    shutdown(socket.raw, Int32(SHUT_WR))
  }

  /// A client that does not read is not waited for longer than a second.
  private func send(_ mark: String, _ text: String) {
    var bytes: [UInt8] = []
    for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
      bytes += Array((mark + line + "\n").utf8)
    }
    var rest = bytes[...]
    while !rest.isEmpty {
      let sent = rest.withUnsafeBytes { part in
        retrying { Glibc.send(socket.raw, part.baseAddress, part.count, Int32(MSG_NOSIGNAL)) }
      }
      if let sent {
        rest = rest.dropFirst(sent)
      } else {
        var waited = pollfd(fd: socket.raw, events: Int16(POLLOUT), revents: 0)
        guard errno == EAGAIN, poll(&waited, 1, 1000) == 1 else { return }
      }
    }
  }

  /// nil: no request that makes sense came within five seconds.
  func request(_ reactor: Reactor) async -> ControlRequest? {
    var line: [UInt8] = []
    while line.count < 64 {
      guard (try? await reactor.readable(socket.raw, within: .seconds(5))) != nil else { return nil }
      var byte: UInt8 = 0
      guard let size = retrying({ recv(socket.raw, &byte, 1, 0) }), size == 1 else { return nil }
      if byte == UInt8(ascii: "\n") { return ControlRequest(rawValue: String(decoding: line, as: UTF8.self)) }
      line.append(byte)
    }
    return nil
  }
}

package final class ControlSocket: Sendable {
  private let socket: Descriptor

  package init(_ path: String) throws(SystemError) {
    let made = try UnixSocket.listen(path)
    socket = made
  }

  /// Clients as they come, each to be served by `body`; until the task is cancelled.
  package func run(_ reactor: Reactor, _ body: @escaping @Sendable (ControlRequest, ControlClient) async -> Void)
    async throws
  {
    try await withThrowingDiscardingTaskGroup { group in
      while true {
        try await reactor.readable(socket.raw)
        guard let descriptor = UnixSocket.accept(socket) else {
          // Perhaps there is no descriptor left; the client waits.
          try await Task.sleep(for: .milliseconds(50))
          continue
        }
        let client = ControlClient(descriptor)
        group.addTask {
          if let request = await client.request(reactor) { await body(request, client) }
        }
      }
    }
  }
}

/// Where `kape wg` answers what the configuration protocol has no words for: rates, counters, bytes of inner packets.
package enum StatusSocket {
  package static func path(of interface: String) -> String {
    path(beside: ConfigurationProtocolClient.path(of: interface))
  }

  /// In the same folder; no name that `wg` would take for an interface.
  static func path(beside socket: String) -> String {
    (socket.hasSuffix(".sock") ? String(socket.dropLast(5)) : socket) + ".status"
  }
}

/// The asking side.
package enum ControlConnection {
  package enum Failure: Error, Equatable, CustomStringConvertible {
    case notAnswering(SystemError)
    /// It ended before its answer did.
    case cutOff

    package var description: String {
      switch self {
      case .notAnswering(let error): "\(error)"
      case .cutOff: "the process ended before it had answered"
      }
    }
  }

  /// Blocks until the answer is whole and returns its code.
  package static func ask(
    _ name: String, _ request: ControlRequest, out: (String) -> Void, error: (String) -> Void,
    raw: (String) -> Void = { _ in }
  ) throws(Failure) -> Int32 {
    try ask(path: RunDirectory.socket(of: name), request, out: out, error: error, raw: raw)
  }

  /// `patience`: ms that it may be silent; -1: as long as it likes.
  package static func ask(
    path: String, _ request: ControlRequest, patience: Int32 = -1, out: (String) -> Void, error: (String) -> Void,
    raw: (String) -> Void = { _ in }
  ) throws(Failure) -> Int32 {
    let socket = try connect(path)
    let question = request.rawValue + "\n"
    guard send(socket.raw, question, question.utf8.count, Int32(MSG_NOSIGNAL)) == question.utf8.count else {
      throw .cutOff
    }
    var pending: [UInt8] = []
    while true {
      var waited = pollfd(fd: socket.raw, events: Int16(POLLIN), revents: 0)
      guard let ready = retrying({ poll(&waited, 1, patience) }), ready > 0 else { throw .cutOff }
      let size = withUnsafeTemporaryAllocation(byteCount: 16384, alignment: 1) { buffer in
        let size = retrying { recv(socket.raw, buffer.baseAddress, buffer.count, 0) } ?? 0
        pending.append(contentsOf: buffer[..<size])
        return size
      }
      while let end = pending.firstIndex(of: UInt8(ascii: "\n")) {
        let line = String(decoding: pending[..<end], as: UTF8.self)
        pending.removeFirst(end + 1)
        switch line.first {
        case "1": out(String(line.dropFirst()))
        case "2": error(String(line.dropFirst()))
        case "3": raw(String(line.dropFirst()))
        default: return Int32(line.dropFirst(2)) ?? 1
        }
      }
      if size == 0 { throw .cutOff }
    }
  }

  private static func connect(_ path: String) throws(Failure) -> Descriptor {
    do throws(SystemError) {
      return try UnixSocket.connect(path)
    } catch {
      throw .notAnswering(error)
    }
  }
}
