import Foundation
import Glibc
import KapeTestSupport
import Synchronization
import Testing

@testable import KapePlatform

/// What Python's server was asked.
struct Asked: Decodable {
  let method: String
  let path: String
  let body: String
  let client: String
  let headers: [String: String]
}

@Suite struct KapeHTTPClientTests {
  private func pinned(_ authority: TestCertificate, _ name: String = "server-1") -> KapeHTTPClient {
    KapeHTTPClient(anchors: .pem(authority.pem), pinnedCommonName: name)
  }

  @Test func asksAndSends() async throws {
    let authority = try TestCertificate.authority()
    let server = try await TestServer.python(try TestCertificate(commonName: "server-1", issuer: authority))
    let client = pinned(authority)
    let base = "https://127.0.0.1:\(server.port)"
    let got = try await client.get("\(base)/a", query: ["pt": "x+/="], headers: ["Authorization": "token"])
    let asked = try got.json(as: Asked.self)
    #expect(got.status == 200 && got.headers["content-TYPE"] == "application/json")
    #expect(asked.method == "GET" && asked.path == "/a?pt=x%2B%2F%3D" && asked.headers["authorization"] == "token")
    #expect(asked.headers["host"] == "127.0.0.1:\(server.port)" && asked.headers["connection"] == "close")

    let posted = try await client.post("\(base)/b", json: ["key": "ä"]).json(as: Asked.self)
    #expect(posted.method == "POST" && posted.body == #"{"key":"ä"}"#)
    #expect(posted.headers["content-type"] == "application/json")
    let form = try await client.post("\(base)/c", form: ["b": "2 3", "a": "&"]).json(as: Asked.self)
    #expect(form.body == "a=%26&b=2%203" && form.headers["content-type"] == "application/x-www-form-urlencoded")
    let empty = try await client.post("\(base)/d", body: Data()).json(as: Asked.self)
    #expect(empty.body.isEmpty && empty.headers["content-length"] == "0")
  }

  @Test func readsChunksFollowsNoRedirectAndKeepsFailures() async throws {
    let authority = try TestCertificate.authority()
    let server = try await TestServer.python(try TestCertificate(commonName: "server-1", issuer: authority))
    let client = pinned(authority)
    let base = "https://127.0.0.1:\(server.port)"
    #expect(try await client.get("\(base)/chunked").body == Data("hello, world".utf8))
    let redirect = try await client.get("\(base)/redirect")
    #expect(redirect.status == 302 && redirect.headers["location"] == "/elsewhere" && redirect.body.isEmpty)
    let forbidden = try await client.get("\(base)/forbidden")
    #expect(!forbidden.isSuccess && !forbidden.body.isEmpty)
    #expect(throws: KapeHTTPError(host: "127.0.0.1:\(server.port)", cause: .status(403))) {
      try forbidden.json(as: Asked.self)
    }
    let reply = try await client.get(base)
    let wrong = #expect(throws: KapeHTTPError.self) { try reply.json(as: [String: Int].self) }
    #expect(wrong?.description.contains("GET") == false)
    #expect(server.output.components(separatedBy: "/elsewhere").count == 1)
  }

  @Test func aBodyWithoutALengthEndsProperlyOrIsLost() async throws {
    let authority = try TestCertificate.authority()
    let server = try await TestServer.python(try TestCertificate(commonName: "server-1", issuer: authority))
    let client = pinned(authority)
    let error = await #expect(throws: KapeHTTPError.self) {
      try await client.get("https://127.0.0.1:\(server.port)/unsized")
    }
    guard case .connectionLost = error?.cause else { return #expect(error == nil, "cut and taken for whole") }
    // Without TLS the end of the connection is all there is.
    let plain = try await TestServer.python()
    let reply = try await KapeHTTPClient(allowsPlainHTTP: true).get("http://127.0.0.1:\(plain.port)/unsized")
    #expect(reply.body == Data("hello".utf8))
  }

  @Test func plainHTTPWhenItIsAskedFor() async throws {
    let server = try await TestServer.python()
    var client = KapeHTTPClient(allowsPlainHTTP: true)
    let asked = try await client.get("http://127.0.0.1:\(server.port)/x").json(as: Asked.self)
    #expect(asked.path == "/x")
    client.allowsPlainHTTP = false
    await #expect(throws: KapeHTTPError(host: "127.0.0.1:\(server.port)", cause: .plainHTTPRefused)) {
      try await client.get("http://127.0.0.1:\(server.port)/y")
    }
    #expect(!server.output.contains("/y"))
  }

  @Test(.enabled(if: hasIPv6Loopback)) func addressesOfIPv6() async throws {
    let authority = try TestCertificate.authority()
    let certificate = try TestCertificate(commonName: "x", alternatives: "IP:::1", issuer: authority)
    let server = try await TestServer.python(certificate, host: "::1")
    let reply = try await KapeHTTPClient(anchors: .pem(authority.pem)).get("https://[::1]:\(server.port)/")
    #expect(try reply.json(as: Asked.self).headers["host"] == "[::1]:\(server.port)")
  }

  @Test func theNextAddressIsTriedWhenOneRefuses() async throws {
    let server = try await TestServer.python()
    var client = KapeHTTPClient(allowsPlainHTTP: true)
    let port = UInt16(server.port)
    client.lookUp = { _, _ in
      try NameLookup.addresses(of: "127.0.0.2", port: 1) + NameLookup.addresses(of: "127.0.0.1", port: port)
    }
    #expect(try await client.get("http://host.test:\(port)/").status == 200)
    client.lookUp = { _, _ in try NameLookup.addresses(of: "127.0.0.2", port: 1) }
    await #expect(throws: KapeHTTPError(host: "host.test:\(port)", cause: .notReached("127.0.0.2: Connection refused")))
    {
      try await client.get("http://host.test:\(port)/")
    }
  }

  @Test func aNameThatIsNotThereHasNoAddress() async {
    let error = await #expect(throws: KapeHTTPError.self) { try await KapeHTTPClient().get("https://nowhere.invalid/") }
    guard case .nameNotFound = error?.cause else { return #expect(error == nil, "not a missing name") }
  }

  @Test func socketsComeFromWhereTheClientIsTold() async throws {
    let server = try await TestServer.python()
    let families = Mutex<[Int32]>([])
    let sockets = KapeHTTPSockets.made { family in
      families.withLock { $0.append(family) }
      let made = try await KapeHTTPSockets.system.make(family)
      // An address of its own, so that the server can tell.
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      inet_pton(AF_INET, "127.0.0.7", &address.sin_addr)
      let bound = withUnsafePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          bind(made, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
        }
      }
      #expect(bound == 0)
      return made
    }
    let client = KapeHTTPClient(allowsPlainHTTP: true, sockets: sockets)
    #expect(try await client.get("http://127.0.0.1:\(server.port)/").json(as: Asked.self).client == "127.0.0.7")
    #expect(families.withLock { $0 } == [AF_INET])

    struct NoDaemon: Error {}
    let without = KapeHTTPClient(sockets: .made { _ in throw NoDaemon() })
    await #expect(throws: KapeHTTPError(host: "127.0.0.1:1", cause: .notReached("no socket: NoDaemon()"))) {
      try await without.get("https://127.0.0.1:1/")
    }
  }

  @Test func aSocketCarriesItsMarkOrIsNotUsed() async throws {
    do {
      let made = OwnedDescriptor(try await KapeHTTPSockets.marked(0x6b61).make(AF_INET))
      var mark: UInt32 = 0
      var size = socklen_t(4)
      #expect(getsockopt(made.raw, SOL_SOCKET, SO_MARK, &mark, &size) == 0 && mark == 0x6b61)
    } catch let cause as KapeHTTPError.Cause {
      #expect(geteuid() != 0 && cause == .notReached("no socket past the tunnel: SO_MARK: Operation not permitted"))
    }
  }

  @Test func aConnectionThatIsClosedWhileSendingIsAnErrorAndNoSignal() async throws {
    let authority = try TestCertificate.authority()
    let certificate = try TestCertificate(commonName: "server-1", issuer: authority)
    let body = Data(repeating: 0x61, count: 8 << 20)
    for (scheme, server) in [
      ("http", try await TestServer.python()), ("https", try await TestServer.python(certificate)),
    ] {
      let client = KapeHTTPClient(
        anchors: .pem(authority.pem), pinnedCommonName: "server-1", allowsPlainHTTP: scheme == "http")
      let error = await #expect(throws: KapeHTTPError.self) {
        try await client.post("\(scheme)://127.0.0.1:\(server.port)/closes", body: body)
      }
      guard case .connectionLost = error?.cause else { return #expect(error == nil, "not a lost connection") }
    }
  }

  @Test func nothingSecretIsLogged() async throws {
    let authority = try TestCertificate.authority()
    let server = try await TestServer.python(try TestCertificate(commonName: "server-1", issuer: authority))
    let lines = Mutex<[String]>([])
    var client = pinned(authority)
    client.logger = KapeLogger(subsystem: "t", category: "t") { _, line in lines.withLock { $0.append(line) } }
    let base = "https://127.0.0.1:\(server.port)"
    _ = try await client.get("\(base)/secret-path", query: ["pt": "secret-query"], headers: ["A": "secret-header"])
    _ = try await client.post("\(base)/", form: ["password": "secret-body"])
    client.pinnedCommonName = "another"
    let error = await #expect(throws: KapeHTTPError.self) {
      try await client.get("\(base)/secret-path", query: ["pt": "secret-query"], headers: ["A": "secret-header"])
    }
    let all = lines.withLock { $0 } + ["\(error.map { "\($0)" } ?? "")"]
    #expect(all.count == 4 && all.allSatisfy { $0.contains("127.0.0.1:\(server.port)") })
    #expect(all.allSatisfy { !$0.contains("secret") })
  }
}

private let hasIPv6Loopback: Bool = {
  let raw = socket(AF_INET6, Int32(SOCK_STREAM.rawValue), 0)
  defer { close(raw) }
  var address = sockaddr_in6()
  address.sin6_family = sa_family_t(AF_INET6)
  inet_pton(AF_INET6, "::1", &address.sin6_addr)
  return withUnsafePointer(to: &address) {
    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(raw, $0, socklen_t(MemoryLayout<sockaddr_in6>.size)) }
  } == 0
}()
