import Foundation
import Synchronization
import Testing

@testable import KapePlatform

@Suite("§4, RFC 8252 7.3: the loopback redirect") struct LoopbackListenerTests {
  /// Runs a listener while `body` is a browser.
  private func listening(
    _ redirect: String = "http://127.0.0.1/callback",
    page: @escaping @Sendable (URL) async -> LoopbackPage = { _ in .done },
    _ body: @Sendable (LoopbackListener, UInt16) async throws -> Void
  ) async throws {
    let url = try #require(URL(string: redirect))
    let listener = try #require(try LoopbackListener(url))
    let task = Task { await listener.run(page) }
    try await body(listener, UInt16(listener.redirectURL.port ?? 0))
    task.cancel()
    await task.value
  }

  @Test("it takes a free port of the loopback address, puts it into the redirect URL, and answers a GET") func answers()
    async throws
  {
    let urls = Mutex<[String]>([])
    try await listening(
      page: { url in
        urls.withLock { $0.append(url.absoluteString) }
        return .done
      },
      { listener, port in
        #expect(port > 0)
        #expect(listener.redirectURL.absoluteString == "http://127.0.0.1:\(port)/callback")
        let answer = try await LoopbackClient.get(
          try #require(URL(string: "http://127.0.0.1:\(port)/callback?code=a%2Fb&state=s")))
        #expect(answer.hasPrefix("HTTP/1.1 200 OK\r\n"))
        for field in ["Cache-Control: no-store", "default-src 'none'", "no-referrer", "Connection: close"] {
          #expect(answer.contains(field))
        }
        #expect(urls.withLock { $0 } == ["http://127.0.0.1:\(port)/callback?code=a%2Fb&state=s"])
      })
  }

  @Test("two at once have two ports; a port of the settings' is taken, and named when another has it") func ports()
    async throws
  {
    try await listening { _, first in
      try await listening { _, second in #expect(first != second) }
      let url = try #require(URL(string: "http://127.0.0.1:\(first)/callback"))
      let error = #expect(throws: (any Error).self) { try LoopbackListener(url) }
      #expect("\(try #require(error))".contains("\(first)"))
    }
  }

  @Test("IPv6 too") func ipv6() async throws {
    try await listening("http://[::1]/cb") { listener, port in
      #expect(listener.redirectURL.absoluteString == "http://[::1]:\(port)/cb")
      let answer = try await LoopbackClient.send("GET /cb?x HTTP/1.1\r\n\r\n", port: port, isIPv6: true)
      #expect(answer.hasPrefix("HTTP/1.1 200"))
    }
  }

  @Test(
    "other redirect URLs have no listener",
    arguments: [
      "com.example.app:/callback", "https://127.0.0.1/callback", "http://192.0.2.1/callback",
      "https://app.example.com/cb",
    ])
  func noListener(_ url: String) throws {
    let url = try #require(URL(string: url))
    #expect(try LoopbackListener(url) == nil)
  }

  @Test(
    "what is no GET is closed without an answer",
    arguments: [
      "POST /callback HTTP/1.1\r\n\r\n", "GET /callback\r\n\r\n", "GET http://x/ HTTP/1.1\r\n\r\n", "\r\n\r\n",
      "GET / SPDY/3\r\n\r\n", "GET  / HTTP/1.1\r\n\r\n", "",
    ])
  func noGet(_ text: String) async throws {
    try await listening { _, port in
      #expect(try await LoopbackClient.send(text, port: port, isEnded: true) == "")
      let answer = try await LoopbackClient.send("GET /callback HTTP/1.1\r\n\r\n", port: port)
      #expect(answer.hasPrefix("HTTP/1.1 200"))
    }
  }

  @Test("a request of more than 16 KiB is closed, and one that never ends holds nobody up") func hostile() async throws
  {
    try await listening { _, port in
      let silent = try (0..<10).map { _ in try LoopbackClient.connect(port: port) }
      defer { for descriptor in silent { close(descriptor) } }
      let long = "GET /callback HTTP/1.1\r\n" + String(repeating: "x: y\r\n", count: 20_000)
      #expect(try await LoopbackClient.send(long, port: port) == "")
      let answer = try await LoopbackClient.send("GET /callback HTTP/1.1\r\n\r\n", port: port)
      #expect(answer.hasPrefix("HTTP/1.1 200"))
    }
  }

  @Test("pages say nothing that was not escaped") func pages() {
    #expect(LoopbackPage.failed("<script>&\"").response.contains("&lt;script&gt;&amp;&quot;"))
    #expect(LoopbackPage.notFound.response.hasPrefix("HTTP/1.1 404"))
    for page in [LoopbackPage.done, .failed("é"), .notFound] {
      let parts = page.response.split(separator: "\r\n\r\n", maxSplits: 1)
      let length = parts[0].split(separator: "\r\n").first { $0.hasPrefix("Content-Length: ") }
      #expect(length == "Content-Length: \(parts[1].utf8.count)")
    }
  }
}
