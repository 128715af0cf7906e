internal import CLinux
import Glibc
internal import KapeCrypto
internal import KapeProtocols
import Synchronization

/// Serves WireGuard's configuration protocol to several clients at once. One that is slow holds up nobody but itself.
package final class ConfigurationServer: Sendable {
  /// Clients at once that nobody has to go for. Above it, for each that comes the one goes that has kept us waiting
  /// longest, be it for a request or with an answer that it does not take.
  static let clientLimit = 64
  /// It goes only after this, so that a busy machine's clients have the time to do what they came for.
  static let grace: UInt64 = 1_000_000_000
  /// Most clients at once, all in all; more wait to be accepted until one may go.
  static let clientMaximum = 256
  /// A client that does not take its answer, or does not end what it began, is left after that time.
  static let patience = Duration.seconds(30)
  /// Most bytes of one transaction that is not complete: about 300,000 peers.
  static let transactionLimit = 128 << 20

  private static let largeTransaction = 256 << 10

  private let socket: ConfigurationSocket
  private let device: WireGuardDevice
  private let reactor: Reactor
  private let log: EventLog
  private let clients = Mutex(ClientTable())

  package init(socket: ConfigurationSocket, device: WireGuardDevice, reactor: Reactor, log: EventLog) {
    self.socket = socket
    self.device = device
    self.reactor = reactor
    self.log = log
  }

  /// Accepts until the task is cancelled; ends its clients then.
  package func run() async throws {
    try await withThrowingDiscardingTaskGroup { group in
      defer { group.cancelAll() }
      var isShort = false
      while true {
        while !clients.withLock({ $0.makeRoom() }) { try await Task.sleep(for: .milliseconds(20)) }
        let client: Int32
        do {
          client = try await socket.accept(reactor)
          isShort = false
        } catch let error as SystemError {
          // Out of descriptors or memory: those who wait stay in the queue, and who only sits there makes room for them.
          if !isShort { log.error("accept", ["error": error.description]) }
          isShort = true
          clients.withLock { $0.endLongest() }
          try await Task.sleep(for: .milliseconds(200))
          continue
        }
        let id = clients.withLock { $0.add(client) }
        group.addTask {
          let descriptor = Descriptor(owning: client)
          do {
            try await self.serve(id, descriptor.raw)
          } catch {
            self.log.verbose("client", ["error": "\(error)"])
          }
          // Before it is closed: its number may be another's then.
          self.clients.withLock { $0.remove(id) }
        }
      }
    }
  }

  private func serve(_ id: Int, _ client: Int32) async throws {
    var reader = WireGuardUAPIReader()
    var pending = 0
    var input = SecretBuffer(capacity: 16_384)
    while true {
      input.removeAll()
      let count = try await receive(id, client, within: reader.isInsideRequest ? Self.patience : nil, &input)
      if count == 0 { return }
      pending += count
      input.withBytes { reader.append($0) }
      var wasLarge = false
      while let request = reader.next() {
        wasLarge = wasLarge || pending > Self.largeTransaction
        pending = 0
        switch request {
        case .get: try await answerGet(id, client)
        case .set(let change): try await answerSet(id, client, change)
        case .refused(let error):
          log.error("configuration_refused", ["errno": String(error.code)])
          try await send(id, client, error)
        case .unknownOperation:
          log.error("configuration_unknown_operation")
          return
        }
      }
      // A transaction takes several times the memory of what it leaves behind.
      if wasLarge { malloc_trim(0) }
      if reader.isClosed { return }
      guard pending <= Self.transactionLimit else {
        try await send(id, client, .noMemory)
        return
      }
    }
  }

  private func answerSet(_ id: Int, _ client: Int32, _ change: WireGuardInterfaceChange) async throws {
    do throws(TunnelError) {
      try await device.apply(change)
      log.verbose("configured", ["peers": String(change.peers.count)])
    } catch {
      log.error("configuration_failed", ["error": error.description, "errno": String(error.code)])
      try await send(id, client, WireGuardUAPIError(errno: error.code))
      return
    }
    try await send(id, client, .none)
  }

  /// Sends while it asks: an answer never exists as a whole.
  private func answerGet(_ id: Int, _ client: Int32) async throws {
    var buffer = SecretBuffer(capacity: 32_768)
    do {
      WireGuardUAPIResponse.append(try await device.interface(), to: &buffer)
      var chunks = device.peerChunks()
      while let chunk = try await chunks.next() {
        chunk.visit { peer in
          if chunk.continuesPeer && peer.id == chunk.firstPeer {
            for prefix in peer.allowedIPs { WireGuardUAPIResponse.append(prefix, to: &buffer) }
          } else {
            WireGuardUAPIResponse.append(peer, to: &buffer)
          }
        }
        try await flush(id, client, &buffer)
      }
      WireGuardUAPIResponse.append(.none, to: &buffer)
    } catch let error as TunnelError {
      WireGuardUAPIResponse.append(WireGuardUAPIError(errno: error.code), to: &buffer)
    }
    try await flush(id, client, &buffer)
  }

  private func send(_ id: Int, _ client: Int32, _ error: WireGuardUAPIError) async throws {
    var buffer = SecretBuffer(capacity: 64)
    WireGuardUAPIResponse.append(error, to: &buffer)
    try await flush(id, client, &buffer)
  }

  /// Sends all that is in the buffer and empties it.
  private func flush(_ id: Int, _ client: Int32, _ buffer: inout SecretBuffer) async throws {
    var sent = 0
    while sent < buffer.count {
      let result = buffer.withBytes { bytes in
        bytes.withUnsafeBytes { bytes in
          retrying { Glibc.send(client, bytes.baseAddress.map { $0 + sent }, bytes.count - sent, Int32(MSG_NOSIGNAL)) }
        }
      }
      if let result {
        sent += result
      } else if errno == EAGAIN {
        clients.withLock { $0.keepsUsWaiting(id, true) }
        try await reactor.writable(client, within: Self.patience)
        clients.withLock { $0.keepsUsWaiting(id, false) }
      } else {
        throw SystemError("send")
      }
    }
    buffer.removeAll()
  }

  /// Appends what there is; 0: the client has ended.
  private func receive(
    _ id: Int, _ client: Int32, within deadline: Duration?, _ buffer: inout SecretBuffer
  ) async throws -> Int {
    while true {
      var failure: Int32 = 0
      let count = buffer.append(capacity: 16_384) { room in
        if let size = retrying({ recv(client, room.baseAddress, room.count, 0) }) { return size }
        failure = errno
        return 0
      }
      if failure == 0 { return count }
      guard failure == EAGAIN else { throw SystemError("recv", code: failure) }
      clients.withLock { $0.keepsUsWaiting(id, true) }
      try await reactor.readable(client, within: deadline)
      clients.withLock { $0.keepsUsWaiting(id, false) }
    }
  }
}

/// Who is connected. Descriptors in it are open.
private struct ClientTable {
  private struct Client {
    var descriptor: Int32
    /// nil: we are at work for it, or it has been told to go.
    var keepsUsWaitingSince: UInt64?
  }

  private var clients: [Int: Client] = [:]
  private var nextIdentifier = 0

  /// Whether there is room for one more. When there are too many, the one goes that has kept us waiting longest.
  mutating func makeRoom() -> Bool {
    if clients.count <= ConfigurationServer.clientLimit { return true }
    endLongest()
    return clients.count < ConfigurationServer.clientMaximum
  }

  /// Tells the one to go that has kept us waiting longest, if that is long enough.
  mutating func endLongest() {
    let now = monotonicNow()
    var longest: (id: Int, since: UInt64)?
    for (id, client) in clients {
      guard let since = client.keepsUsWaitingSince, since < longest?.since ?? .max else { continue }
      longest = (id, since)
    }
    if let longest, now - longest.since >= ConfigurationServer.grace, let client = clients[longest.id] {
      shutdown(client.descriptor, Int32(SHUT_RDWR))
      clients[longest.id]?.keepsUsWaitingSince = nil
    }
  }

  mutating func add(_ descriptor: Int32) -> Int {
    nextIdentifier += 1
    clients[nextIdentifier] = Client(descriptor: descriptor)
    return nextIdentifier
  }

  mutating func keepsUsWaiting(_ id: Int, _ doesSo: Bool) {
    clients[id]?.keepsUsWaitingSince = doesSo ? monotonicNow() : nil
  }

  mutating func remove(_ id: Int) { clients[id] = nil }
}
