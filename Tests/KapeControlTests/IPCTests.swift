import Glibc
import KapeControl
import Synchronization
import Testing

@Suite struct IPCMessageTests {
  private func message(_ text: String) throws -> IPCMessage { try IPCMessage(Array(text.utf8)) }

  @Test func messagesReadBack() throws {
    let messages: [IPCMessage] = [
      .request(
        id: 7, operation: "start", body: [.init("id", .null), .init("x", .unsigned(1))].filter { $0.name != "id" }),
      .reply(id: .max, .success(.object([.init("a", .bool(true))]))),
      .reply(id: 0, .failure(IPCFailure(.refused, "no"))),
    ]
    for one in messages { #expect(try message(one.json.compactText) == one) }
  }

  @Test func anotherVersionIsToldApartFromNonsense() throws {
    #expect(throws: IPCMessage.Invalid.version(2, id: 9)) { try message(#"{"v":2,"id":9,"new":"things"}"#) }
    #expect(throws: IPCMessage.Invalid.version(0, id: 0)) { try message(#"{"v":0}"#) }
    #expect("\(IPCMessage.Invalid.version(2, id: 9))" == "version 2 of the protocol is not spoken here, only 1")
  }

  @Test(arguments: [
    "[]", "7", "{}", #"{"v":"1","id":1,"op":"x"}"#, #"{"v":1,"op":"x"}"#, #"{"v":1,"id":-1,"op":"x"}"#,
    #"{"v":1,"id":1}"#, #"{"v":1,"id":1,"op":""}"#, #"{"v":1,"id":1,"op":7}"#, #"{"v":1,"id":1,"error":"x"}"#,
    #"{"v":1,"id":1.5,"op":"x"}"#, "nonsense",
  ])
  func whatIsNoMessageIsRefused(_ text: String) {
    #expect {
      try message(text)
    } throws: { error in
      if case IPCMessage.Invalid.malformed = error { true } else { false }
    }
  }

  @Test func sizesAreBounded() {
    #expect(IPCFrame.size([0, 16, 0, 0]) == 1 << 20)
    #expect(IPCFrame.size([0, 16, 0, 1]) == nil)
    #expect(IPCFrame.size([0, 0, 0, 1]) == nil)
    #expect(IPCFrame.size([0, 0, 0]) == nil)
    let text = String(repeating: "x", count: 1 << 20)
    #expect(IPCFrame.encode(.request(id: 1, operation: text, body: [])) == nil)
  }
}

@Suite struct IPCConnectionTests {
  /// Both ends of a connection, and one of them as a bare descriptor where a test wants to misbehave.
  private func pair() throws -> (IPCConnection, IPCConnection) {
    let reactor = try Reactor()
    let pair = try UnixSocket.pair()
    let first = fcntl(pair.first.raw, F_DUPFD_CLOEXEC, 0)
    let second = fcntl(pair.second.raw, F_DUPFD_CLOEXEC, 0)
    return (
      try IPCConnection(Descriptor(owning: first), reactor), try IPCConnection(Descriptor(owning: second), reactor)
    )
  }

  private func oneEnd() throws -> (IPCConnection, Int32) {
    let pair = try UnixSocket.pair()
    let raw = fcntl(pair.second.raw, F_DUPFD_CLOEXEC, 0)
    let first = fcntl(pair.first.raw, F_DUPFD_CLOEXEC, 0)
    return (try IPCConnection(Descriptor(owning: first), Reactor()), raw)
  }

  private func frame(_ text: String) -> [UInt8] {
    let body = Array(text.utf8)
    return withUnsafeBytes(of: UInt32(body.count).bigEndian) { Array($0) } + body
  }

  private func put(_ bytes: [UInt8], _ descriptor: Int32) {
    #expect(write(descriptor, bytes, bytes.count) == bytes.count)
  }

  /// Holds up no thread: the connection under test needs them.
  private func get(_ size: Int, _ descriptor: Int32) async -> [UInt8] {
    var bytes: [UInt8] = []
    while bytes.count < size {
      var part = [UInt8](repeating: 0, count: size - bytes.count)
      let count = recv(descriptor, &part, part.count, Int32(MSG_DONTWAIT))
      if count > 0 {
        bytes += part[..<count]
      } else if count == 0 || errno != EAGAIN {
        break
      } else {
        await Task.yield()
      }
    }
    return bytes
  }

  /// Empty when the connection has ended.
  private func get(_ descriptor: Int32) async -> String {
    guard let size = IPCFrame.size(await get(4, descriptor)) else { return "" }
    return String(decoding: await get(size, descriptor), as: UTF8.self)
  }

  @Test func bothSidesAskAtOnce() async throws {
    let (a, b) = try pair()
    #expect(a.peer.process == getpid())
    #expect(a.peer.user == getuid())
    let double: @Sendable (IPCRequest) async -> Void = { request in
      do {
        var fields = try request.fields
        await request.reply(.unsigned(try fields.unsigned("n") * 2))
      } catch {
        await request.refuse(IPCFailure(.malformed, "\(error)"))
      }
    }
    let runs = [Task { await a.run(double) }, Task { await b.run(double) }]
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number: UInt64 in 0..<50 {
        for side in [a, b] {
          group.addTask {
            let reply = try await side.ask("double", [.init("n", .unsigned(number))], within: .seconds(60))
            #expect(reply.value == .unsigned(number * 2))
          }
        }
      }
      try await group.waitForAll()
    }
    await #expect(throws: IPCFailure(.malformed, "double.n: it is missing")) {
      try await a.ask("double", within: .seconds(60))
    }
    a.close()
    for run in runs { await run.value }
    await #expect(throws: IPCFailure(.failed, "the connection has ended")) {
      try await b.ask("x", within: .seconds(60))
    }
  }

  @Test func descriptorsArriveWithTheirMessageAndAreClosedInOtherPrograms() async throws {
    let (a, b) = try pair()
    let run = Task {
      await b.run { request in
        let given = request.descriptors.take()
        await request.reply(.unsigned(UInt64(given.count)), descriptors: given)
        for one in given { close(one) }
      }
    }
    let reading = Task { await a.run { _ in } }
    let file = open("/dev/null", O_RDONLY | O_CLOEXEC)
    defer { close(file) }
    for count in [1, 0, 4, 2] {
      let reply = try await a.ask("echo", descriptors: Array(repeating: file, count: count), within: .seconds(60))
      #expect(reply.value == .unsigned(UInt64(count)))
      let back = reply.descriptors.take()
      #expect(back.count == count)
      #expect(reply.descriptors.take().isEmpty, "once")
      for one in back {
        #expect(fcntl(one, F_GETFD) & FD_CLOEXEC != 0)
        var first = stat()
        var second = stat()
        #expect(fstat(one, &first) == 0 && fstat(file, &second) == 0 && first.st_ino == second.st_ino)
        close(one)
      }
    }
    a.close()
    await run.value
    await reading.value
  }

  @Test func aMessageMayComeByteByByteAndTwoAtOnce() async throws {
    let (a, raw) = try oneEnd()
    defer { close(raw) }
    let seen = Mutex<[String]>([])
    let run = Task { await a.run { request in seen.withLock { $0.append(request.operation) } } }
    for byte in frame(#"{"v":1,"id":1,"op":"slow"}"#) { put([byte], raw) }
    put(frame(#"{"v":1,"id":2,"op":"two"}"#) + frame(#"{"v":1,"id":3,"op":"three"}"#), raw)
    shutdown(raw, Int32(SHUT_WR))
    await run.value
    #expect(seen.withLock { $0 } == ["slow", "two", "three"])
  }

  @Test func anotherVersionIsRefusedWithBothAndTheConnectionStays() async throws {
    let (a, raw) = try oneEnd()
    defer { close(raw) }
    let run = Task { await a.run { await $0.reply() } }
    put(frame(#"{"v":3,"id":8,"op":"x"}"#) + frame(#"{"v":1,"id":9,"op":"x"}"#), raw)
    let refused = await get(raw)
    #expect(refused.contains(#""id":8,"error":{"code":"version""#))
    #expect(refused.contains("version 3") && refused.contains("only 1"))
    #expect(await get(raw) == #"{"v":1,"id":9,"ok":{}}"#)
    shutdown(raw, Int32(SHUT_WR))
    await run.value
  }

  @Test(arguments: [[0, 0, 0, 0], [0xFF, 0xFF, 0xFF, 0xFF], [0, 0, 0, 2, 0x7B, 0x7B]] as [[UInt8]])
  func whoBreaksTheProtocolIsHungUpOn(_ bytes: [UInt8]) async throws {
    let (a, raw) = try oneEnd()
    defer { close(raw) }
    let run = Task { await a.run { _ in Issue.record("a request") } }
    put(bytes, raw)
    await run.value
    while await !get(raw).isEmpty {}
    #expect(await get(1, raw).isEmpty)
  }

  @Test func descriptorsInTheMiddleOfAMessageEndTheConnectionAndAreClosed() async throws {
    let (a, raw) = try oneEnd()
    defer { close(raw) }
    var pipe: [Int32] = [-1, -1]
    try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &pipe) == 0)
    defer { close(pipe[0]) }
    let run = Task { await a.run { _ in Issue.record("a request") } }
    let bytes = frame(#"{"v":1,"id":1,"op":"x"}"#)
    put(Array(bytes[..<6]), raw)
    // Whoever reads takes the header first, so that these come with the body.
    #expect(sendDescriptor(pipe[1], Array(bytes[6...]), raw) == bytes.count - 6)
    close(pipe[1])
    await run.value
    var byte: UInt8 = 0
    #expect(recv(pipe[0], &byte, 1, 0) == 0, "the other end is closed everywhere")
  }

  @Test func aReplyThatNeverComesIsGivenUp() async throws {
    let (a, b) = try pair()
    let run = Task { await b.run { _ in } }
    let reading = Task { await a.run { _ in } }
    await #expect {
      try await a.ask("x", within: .milliseconds(1))
    } throws: { ($0 as? IPCFailure)?.code == .late }
    a.close()
    await run.value
    await reading.value
  }

  @Test func whoAsksTooMuchAtOnceIsToldSo() async throws {
    let (a, raw) = try oneEnd()
    defer { close(raw) }
    let asks = (0..<64).map { _ in Task { try await a.ask("x", within: .seconds(60)) } }
    for _ in 0..<64 { _ = await get(raw) }
    await #expect { try await a.ask("x", within: .seconds(60)) } throws: { ($0 as? IPCFailure)?.code == .busy }
    a.close()
    for ask in asks { await #expect(throws: IPCFailure.self) { try await ask.value } }
  }
}

/// sendmsg(2) with one descriptor, written out here so that the product's own way is not what is tested with.
private func sendDescriptor(_ descriptor: Int32, _ bytes: [UInt8], _ socket: Int32) -> Int {
  var bytes = bytes
  return bytes.withUnsafeMutableBytes { bytes in
    var part = iovec(iov_base: bytes.baseAddress, iov_len: bytes.count)
    // struct cmsghdr {size_t len; int level, type;} and the descriptor, padded to 8.
    var control: (UInt, Int32, Int32, Int32, Int32) = (20, SOL_SOCKET, 1, descriptor, 0)
    return withUnsafeMutablePointer(to: &part) { part in
      withUnsafeMutableBytes(of: &control) { control in
        var message = msghdr()
        message.msg_iov = part
        message.msg_iovlen = 1
        message.msg_control = control.baseAddress
        message.msg_controllen = 24
        return sendmsg(socket, &message, 0)
      }
    }
  }
}
