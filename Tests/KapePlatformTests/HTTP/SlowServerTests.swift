import Foundation
import Glibc
import KapeTestSupport
import Testing

@testable import KapePlatform

/// Servers that do not answer, in virtual time.
@Suite struct SlowServerTests {
  private func client(_ clock: TestClock, _ authority: TestCertificate) -> KapeHTTPClient {
    var client = KapeHTTPClient(anchors: .pem(authority.pem), pinnedCommonName: "server-1", timeout: .seconds(10))
    client.clock = clock
    return client
  }

  @Test func aCallEndsWithItsTimeAndItsConnectionWithIt() async throws {
    let authority = try TestCertificate.authority()
    // It takes a connection and says nothing.
    let server = try await TestServer.openssl(TestCertificate(commonName: "server-1", issuer: authority))
    let clock = TestClock()
    let client = client(clock, authority)
    let call = Task { try await client.get("https://127.0.0.1:\(server.port)/") }
    #expect(try await server.waitFor { $0.contains("GET / HTTP/1.1") ? true : nil } == true)
    await clock.whenAsleep()
    clock.advance(by: .seconds(9))
    #expect(clock.sleepers == 1)
    clock.advance(by: .seconds(1))
    await #expect(
      throws: KapeHTTPError(host: "127.0.0.1:\(server.port)", cause: .timedOut(while: "waiting for the answer"))
    ) { try await call.value }
    #expect(try await server.waitFor { $0.contains("CONNECTION CLOSED") || $0.contains("DONE") ? true : nil } == true)
  }

  @Test func aCancelledTaskEndsItsCall() async throws {
    let authority = try TestCertificate.authority()
    let server = try await TestServer.openssl(TestCertificate(commonName: "server-1", issuer: authority))
    let client = client(TestClock(), authority)
    let call = Task { try await client.get("https://127.0.0.1:\(server.port)/") }
    #expect(try await server.waitFor { $0.contains("GET / HTTP/1.1") ? true : nil } == true)
    call.cancel()
    await #expect(throws: CancellationError.self) { try await call.value }
    #expect(try await server.waitFor { $0.contains("CONNECTION CLOSED") || $0.contains("DONE") ? true : nil } == true)
    await #expect(throws: CancellationError.self) {
      try await Task {
        withUnsafeCurrentTask { $0?.cancel() }
        return try await client.get("https://127.0.0.1:\(server.port)/")
      }.value
    }
  }

  @Test func aNameLookUpThatHangsEndsWithTheTime() async throws {
    let clock = TestClock()
    var client = client(clock, try TestCertificate.authority())
    let hanging = DispatchSemaphore(value: 0)
    client.lookUp = { _, _ in
      hanging.wait()
      throw KapeHTTPError.Cause.nameNotFound("never")
    }
    let call = Task { [client] in try await client.get("https://host.test/") }
    await clock.whenAsleep()
    clock.advance(by: .seconds(10))
    await #expect(throws: KapeHTTPError(host: "host.test:443", cause: .timedOut(while: "looking up the name"))) {
      try await call.value
    }
    hanging.signal()
  }

  @Test func callsThatWaitLeaveTheOtherTasksTheirThreads() async throws {
    let clock = TestClock()
    let client = client(clock, try TestCertificate.authority())
    // The system takes connections in its name, and nobody answers them.
    let silent = try Listener()
    let calls = (0..<8).map { _ in Task { try await client.get("https://127.0.0.1:\(silent.port)/") } }
    await clock.whenAsleep(8)
    // More of them than the pool has threads; if they held these, this would never come to an end.
    let sum = await withTaskGroup(of: Int.self) { group in
      for value in 1...100 { group.addTask { value } }
      return await group.reduce(0, +)
    }
    #expect(sum == 5050)
    // Each has connected and waits for TLS.
    try await silent.take(8)
    clock.advance(by: .seconds(10))
    for call in calls {
      let error = await #expect(throws: KapeHTTPError.self) { try await call.value }
      guard case .timedOut = error?.cause else { return #expect(error == nil, "not out of time") }
    }
  }
}

/// Takes connections and does nothing with them.
private actor Listener {
  private let socket: OwnedDescriptor
  nonisolated let port: UInt16
  private var taken: [OwnedDescriptor] = []

  init() throws {
    let raw = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue), 0)
    socket = OwnedDescriptor(raw)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr)
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let result = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(raw, $0, size) == 0 && listen(raw, 64) == 0 && getsockname(raw, $0, &size) == 0
      }
    }
    #expect(result)
    port = UInt16(bigEndian: address.sin_port)
  }

  func take(_ count: Int) async throws {
    while taken.count < count {
      let raw = accept(socket.raw, nil, nil)
      if raw >= 0 { taken.append(OwnedDescriptor(raw)) } else { try await Task.sleep(for: .milliseconds(1)) }
    }
  }
}
