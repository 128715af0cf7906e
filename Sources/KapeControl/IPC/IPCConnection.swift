internal import CLinux
import Glibc
import Synchronization

/// A connection on which both sides may ask and answer. Reading is `run`'s, one task's; asking and answering may happen
/// from anywhere meanwhile. A side that breaks the protocol, or does not read for ten seconds, is hung up on.
package final class IPCConnection: Sendable {
  /// Who is at the other end, as he was when he connected (SO_PEERCRED).
  package let peer: PeerCredentials
  /// What one side may leave unanswered.
  private static let mostPending = 64
  private static let patience: Duration = .seconds(10)

  private let socket: Descriptor
  /// The same socket for who waits to write, since one task waits for a descriptor at a time.
  private let writing: Descriptor
  private let reactor: Reactor
  private let sending = AsyncLock()
  private let state = Mutex(State())

  private struct State {
    var next: UInt64 = 1
    var pending: [UInt64: FirstAnswer<IPCReply>] = [:]
    var isClosed = false
  }

  package init(_ socket: consuming Descriptor, _ reactor: Reactor) throws(SystemError) {
    let copy = fcntl(socket.raw, F_DUPFD_CLOEXEC, 0)
    guard copy >= 0 else { throw SystemError("fcntl") }
    writing = Descriptor(owning: copy)
    try socket.setNonBlocking()
    guard let peer = UnixSocket.peer(socket) else { throw SystemError("getsockopt(SO_PEERCRED)") }
    self.peer = peer
    self.socket = socket
    self.reactor = reactor
  }

  /// To the socket at `path`; blocks no longer than the connection takes, which a full backlog refuses at once.
  package static func connect(_ path: String, _ reactor: Reactor) throws(SystemError) -> IPCConnection {
    try IPCConnection(try UnixSocket.connect(path), reactor)
  }

  /// Both ends' `run` return soon.
  package func close() {
    shutdown(socket.raw, Int32(SHUT_RDWR))
    fail()
  }

  private func fail() {
    let waiting = state.withLock { state in
      state.isClosed = true
      defer { state.pending = [:] }
      return Array(state.pending.values)
    }
    for answer in waiting { answer.give(.failure(IPCFailure(.failed, "the connection has ended"))) }
  }

  // MARK: Asking

  /// Waits for the reply at most until `limit` of `clock`. Throws `IPCFailure`, or `CancellationError`.
  package func ask(
    _ operation: String, _ body: [JSONValue.Member] = [], descriptors: [Int32] = [],
    within limit: Duration, of clock: any Clock<Duration> = ContinuousClock()
  ) async throws -> IPCReply {
    let answer = FirstAnswer<IPCReply>()
    let id = try state.withLock { state throws(IPCFailure) in
      guard !state.isClosed else { throw IPCFailure(.failed, "the connection has ended") }
      guard state.pending.count < Self.mostPending else { throw IPCFailure(.busy, "too much is unanswered") }
      defer { state.next += 1 }
      state.pending[state.next] = answer
      return state.next
    }
    defer { state.withLock { _ = $0.pending.removeValue(forKey: id) } }
    do {
      return try await within(limit, of: clock, "the other program") {
        try await self.send(.request(id: id, operation: operation, body: body), descriptors)
        return try await withTaskCancellationHandler {
          try await withCheckedThrowingContinuation { answer.expect($0) }
        } onCancel: {
          answer.give(.failure(CancellationError()))
        }
      }
    } catch let late as DeadlineExceeded {
      throw IPCFailure(.late, "\(late)")
    }
  }

  /// Asks without waiting for what is said to it.
  package func tell(_ operation: String, _ body: [JSONValue.Member] = []) async throws {
    let id = state.withLock { state in
      defer { state.next += 1 }
      return state.next
    }
    try await send(.request(id: id, operation: operation, body: body), [])
  }

  // MARK: Answering

  /// Reads until the other side ends, breaks the protocol, or the task is cancelled; gives each request to `answer`, one
  /// after the other, which replies by `reply` now or later.
  package func run(_ answer: @Sendable (IPCRequest) async -> Void) async {
    defer { close() }
    do {
      while let (bytes, descriptors) = try await receive() {
        let message: IPCMessage
        do throws(IPCMessage.Invalid) {
          message = try IPCMessage(bytes)
        } catch {
          guard case .version(_, let id) = error else { throw error }
          try await send(.reply(id: id, .failure(IPCFailure(.version, error.description))), [])
          continue
        }
        switch message {
        case .request(let id, let operation, let body):
          await answer(
            IPCRequest(connection: self, id: id, operation: operation, body: body, descriptors: descriptors))
        case .reply(let id, let result):
          let waiting = state.withLock { $0.pending.removeValue(forKey: id) }
          waiting?.give(result.map { IPCReply(value: $0, descriptors: descriptors) }.mapError { $0 })
        }
      }
    } catch let invalid as IPCMessage.Invalid {
      // Where the next message would begin is not to be trusted either.
      try? await send(.reply(id: 0, .failure(IPCFailure(.malformed, invalid.description))), [])
    } catch {}
  }

  // MARK: Wire

  fileprivate func send(_ message: IPCMessage, _ descriptors: [Int32]) async throws {
    guard let bytes = IPCFrame.encode(message) else {
      throw IPCFailure(.invalid, "a message has at most \(IPCFrame.largest) bytes")
    }
    try await sending.withLock {
      do {
        try await write(bytes, descriptors)
      } catch {
        // Perhaps half of it went: nothing that follows would be understood.
        close()
        throw error
      }
    }
  }

  private func write(_ bytes: [UInt8], _ descriptors: [Int32]) async throws {
    var rest = bytes[...]
    var descriptors = descriptors
    while !rest.isEmpty {
      let sent = rest.withUnsafeBytes { part in
        retrying { clinux_send(writing.raw, part.baseAddress, part.count, descriptors, descriptors.count) }
      }
      if let sent {
        rest = rest.dropFirst(sent)
        descriptors = []
      } else {
        guard errno == EAGAIN else { throw IPCFailure(.failed, "the connection has ended") }
        try await reactor.writable(writing.raw, within: Self.patience)
      }
    }
  }

  /// nil: the other side has ended.
  private func receive() async throws -> ([UInt8], ReceivedDescriptors)? {
    guard let first = try await receive(IPCFrame.headerSize, within: nil) else { return nil }
    let descriptors = ReceivedDescriptors(first.descriptors)
    guard let rest = try await receiveAll(IPCFrame.headerSize - first.bytes.count) else { return nil }
    guard let size = IPCFrame.size(first.bytes + rest) else {
      throw IPCMessage.Invalid.malformed("its size is not within 2 to \(IPCFrame.largest)")
    }
    return try await receiveAll(size).map { ($0, descriptors) }
  }

  /// Memory is taken as bytes come, not as they are announced.
  private func receiveAll(_ size: Int) async throws -> [UInt8]? {
    var bytes: [UInt8] = []
    while bytes.count < size {
      guard let part = try await receive(size - bytes.count, within: Self.patience) else { return nil }
      guard part.descriptors.isEmpty else {
        _ = ReceivedDescriptors(part.descriptors)
        throw IPCMessage.Invalid.malformed("descriptors come with the first byte")
      }
      bytes += part.bytes
    }
    return bytes
  }

  /// At most `most` bytes, so that a read never reaches into the next message; nil at the end.
  private func receive(_ most: Int, within limit: Duration?) async throws -> (bytes: [UInt8], descriptors: [Int32])? {
    while true {
      try await reactor.readable(socket.raw, within: limit)
      var count: Int32 = 0
      var descriptors = [Int32](repeating: -1, count: Int(CLINUX_MOST_DESCRIPTORS))
      var size: Int?
      let bytes = [UInt8](unsafeUninitializedCapacity: min(most, 65_536)) { buffer, filled in
        size = retrying { clinux_receive(socket.raw, buffer.baseAddress, buffer.count, &descriptors, &count) }
        filled = max(0, size ?? 0)
      }
      guard let size else {
        if errno == EAGAIN { continue }
        throw SystemError("recvmsg")
      }
      guard count >= 0 else { throw IPCMessage.Invalid.malformed("more descriptors than there is room for") }
      if size == 0 { return nil }
      return (bytes, Array(descriptors.prefix(Int(count))))
    }
  }
}

/// What came back, with what came with it.
package struct IPCReply: Sendable {
  package var value: JSONValue
  package var descriptors: ReceivedDescriptors
}

/// A request of the other side.
package struct IPCRequest: Sendable {
  let connection: IPCConnection
  let id: UInt64
  package let operation: String
  package let body: [JSONValue.Member]
  package let descriptors: ReceivedDescriptors

  package var fields: JSONFields {
    get throws(JSONFields.Fault) { try JSONFields(.object(body), operation) }
  }

  /// Once. What is sent along stays the caller's. An answer that does not arrive is the other side's loss.
  package func reply(_ value: JSONValue = .object([]), descriptors: [Int32] = []) async {
    do {
      try await connection.send(.reply(id: id, .success(value)), descriptors)
    } catch let failure as IPCFailure where failure.code == .invalid {
      await refuse(failure)
    } catch {}
  }

  package func refuse(_ failure: IPCFailure) async {
    try? await connection.send(.reply(id: id, .failure(failure)), [])
  }
}
