import Foundation
import Testing

@testable import KapePlatform

/// Answers that are wrong, over real TLS.
@Suite struct BadAnswerTests {
  private func ask(_ answer: String, body: Int = 1000) async throws -> Result<KapeHTTPReply, KapeHTTPError.Cause> {
    let authority = try TestCertificate.authority()
    let server = try await TestServer.openssl(
      TestCertificate(commonName: "server-1", issuer: authority), files: ["answer": answer])
    let client = KapeHTTPClient(
      anchors: .pem(authority.pem), pinnedCommonName: "server-1", maximumBodySize: body)
    do {
      return .success(try await client.get("https://127.0.0.1:\(server.port)/answer"))
    } catch let error as KapeHTTPError {
      return .failure(error.cause)
    }
  }

  private func cause(_ answer: String, body: Int = 1000) async throws -> KapeHTTPError.Cause? {
    if case .failure(let cause) = try await ask(answer, body: body) { cause } else { nil }
  }

  @Test func aHugeHead() async throws {
    let answer = "HTTP/1.1 200 OK\r\nA: " + String(repeating: "a", count: 200_000) + "\r\n\r\n"
    #expect(try await cause(answer) == .badReply("a head of more than 32768 bytes"))
  }

  @Test func aLargeBody() async throws {
    let body = String(repeating: "b", count: 100_000)
    #expect(try await cause("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + body) == .bodyTooLarge(limit: 1000))
    #expect(try await cause("HTTP/1.1 200 OK\r\n\r\n" + body) == .bodyTooLarge(limit: 1000))
    let whole = try await ask("HTTP/1.1 200 OK\r\n\r\n" + body, body: 100_000).get()
    #expect(whole.body.count == 100_000)
  }

  @Test func anAnswerThatIsNotWhole() async throws {
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    for answer in [
      chunked + "5\r\nab", chunked + "5\r\nhello\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", "HTTP",
    ] {
      guard case .connectionLost = try await cause(answer) else { return #expect(answer == "") }
    }
  }

  @Test func twoLengths() async throws {
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    #expect(try await cause(answer) == .badReply("Content-Length and Transfer-Encoding together"))
  }

  @Test func somethingElse() async throws {
    #expect(try await cause("SSH-2.0-x\r\n\r\n") == .badReply("the first line is no HTTP status line"))
  }
}
