import KapePlatform
import KapeTestSupport
import Testing

@Suite struct HTTPResponseParserTests {
  typealias Parser = HTTPResponseParser

  private func parse(_ text: String, body: Int = 1000, ended: Bool = false) throws(HTTPParseError) -> Parser {
    var parser = Parser(limits: Parser.Limits(body: body))
    try parser.append(Array(text.utf8))
    if ended { try parser.finish() }
    return parser
  }

  @Test func readsAnAnswerWithALength() throws {
    let parser = try parse("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A:  one \r\nx-a:\ttwo\r\n\r\nhello")
    #expect(parser.isComplete && parser.status == 200 && parser.body == Array("hello".utf8))
    #expect(parser.fields.values(of: "x-a") == ["one", "two"])
  }

  @Test func readsChunksWithExtensionsAndTrailers() throws {
    let parser = try parse(
      "HTTP/1.1 404 Not Found\r\nTransfer-Encoding: Chunked\r\n\r\n5;a=b\r\nhello\r\n01 ;q\r\n!\r\n0\r\nX-T: 1\r\n\r\n")
    #expect(parser.isComplete && parser.status == 404 && parser.body == Array("hello!".utf8))
    #expect(parser.fields.values(of: "x-t").isEmpty)
  }

  @Test func readsABodyThatEndsWithTheConnection() throws {
    #expect(try parse("HTTP/1.0 200\r\n\r\nabc").isComplete == false)
    let parser = try parse("HTTP/1.0 200\r\n\r\nabc", ended: true)
    #expect(parser.isComplete && parser.body == Array("abc".utf8))
  }

  @Test func readsAnswersWithoutABody() throws {
    for head in [
      "204 No Content\r\n", "304 Not Modified\r\nContent-Length: 70000\r\n", "200 OK\r\nContent-Length: 0\r\n",
    ] {
      let parser = try parse("HTTP/1.1 \(head)\r\n")
      #expect(parser.isComplete && parser.body.isEmpty)
    }
  }

  @Test func passesInterimAnswersOver() throws {
    let parser = try parse(
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n!")
    #expect(parser.isComplete && parser.status == 200 && parser.fields.count == 1)
  }

  @Test(
    arguments: [
      ("HTTP/1.1 200 OK\nContent-Length: 1\n\n!", .controlCharacter),
      ("HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n", .controlCharacter),
      ("HTTP/1.1 200 OK\r\nA: b\0c\r\n\r\n", .controlCharacter),
      ("HTTP/1.1 200 OK\r\nA: b\u{7F}\r\n\r\n", .controlCharacter),
      ("\r\n", .statusLine),
      ("HTTP/1.1  200 OK\r\n", .statusLine),
      ("HTTP/1.1 20 OK\r\n", .statusLine),
      ("HTTP/1.1 2000\r\n", .statusLine),
      ("HTTP/1.1 600 No\r\n", .statusLine),
      ("HTTP/1.1 099 No\r\n", .statusLine),
      ("HTTP/1.1 +20 No\r\n", .statusLine),
      ("ICY 200 OK\r\n", .statusLine),
      ("HTTP/2.0 200 OK\r\n", .version),
      ("HTTP/1.2 200 OK\r\n", .version),
      ("HTTP/1.1 101 Switching\r\n\r\n", .interimResponse),
      ("HTTP/1.1 200 OK\r\n A: b\r\n", .foldedField),
      ("HTTP/1.1 200 OK\r\nA: b\r\n\tc\r\n", .foldedField),
      ("HTTP/1.1 200 OK\r\nA : b\r\n", .fieldName),
      ("HTTP/1.1 200 OK\r\n: b\r\n", .fieldName),
      ("HTTP/1.1 200 OK\r\nA\r\n", .fieldName),
      ("HTTP/1.1 200 OK\r\nA(b): c\r\n", .fieldName),
      ("HTTP/1.1 200 OK\r\nContent-Length: \r\n\r\n", .contentLength),
      ("HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n", .contentLength),
      ("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", .contentLength),
      ("HTTP/1.1 200 OK\r\nContent-Length: 0x1\r\n\r\n", .contentLength),
      ("HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\n", .contentLength),
      ("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", .contentLength),
      ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\ncontent-length: 1\r\n\r\n!", .contentLength),
      ("HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n", .bodyTooLarge(limit: 1000)),
      ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", .ambiguousLength),
      ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", .transferEncoding),
      ("HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\n", .transferEncoding),
      ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", .transferEncoding),
      ("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", .transferEncoding),
      ("HTTP/1.1 204 No\r\nTransfer-Encoding: chunked\r\n\r\n", .transferEncoding),
      ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n!!", .excess),
      ("HTTP/1.1 204 No\r\n\r\nHTTP/1.1 200 OK\r\n", .excess),
    ] as [(String, HTTPParseError)])
  func refuses(_ text: String, _ error: HTTPParseError) {
    #expect(throws: error) { try parse(text) }
  }

  @Test(
    arguments: [
      ("0x5\r\n", .chunkSize), ("\r\n", .chunkSize), (" 5\r\n", .chunkSize), ("5 \r\n", .chunkSize),
      ("+5\r\n", .chunkSize),
      ("-1\r\n", .chunkSize), ("5g\r\n", .chunkSize), ("fffffffffffffffff\r\n", .chunkSize),
      ("7fffffffffffffff\r\n", .bodyTooLarge(limit: 1000)), ("3e9\r\n", .bodyTooLarge(limit: 1000)),
      ("5;" + String(repeating: "a", count: 300), .chunkSize), ("3\r\nabcd\r\n", .chunkEnd), ("3\r\nabc\n", .chunkEnd),
      ("3\r\nabc0\r\n\r\n", .chunkEnd), ("0\r\nX : 1\r\n\r\n", .fieldName), ("5\n", .controlCharacter),
      ("3e8\r\n" + String(repeating: "a", count: 1000) + "\r\n1\r\n", .bodyTooLarge(limit: 1000)),
    ] as [(String, HTTPParseError)])
  func refusesChunks(_ text: String, _ error: HTTPParseError) {
    #expect(throws: error) { try parse("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + text) }
  }

  @Test(
    arguments: [
      "", "HTTP/1.1 200 OK", "HTTP/1.1 200 OK\r\nA: b", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello", "HTTP/1.1 100 Continue\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n",
    ])
  func anEndInTheMidstIsNoEnd(_ text: String) {
    #expect(throws: HTTPParseError.truncated) { try parse(text, ended: true) }
  }

  @Test func keepsNoMoreThanTheLimits() {
    let start = "HTTP/1.1 200 OK\r\n"
    #expect(throws: HTTPParseError.tooManyFields(limit: 128)) {
      try parse(start + String(repeating: "A: b\r\n", count: 129))
    }
    #expect(throws: HTTPParseError.headTooLarge(limit: 32 * 1024)) {
      try parse(start + "A: " + String(repeating: "b", count: 32 * 1024))
    }
    #expect(throws: HTTPParseError.headTooLarge(limit: 32 * 1024)) {
      try parse(
        start + "Transfer-Encoding: chunked\r\n\r\n0\r\n" + String(repeating: "Trailer-\(1): b\r\n", count: 3000))
    }
    #expect(throws: HTTPParseError.interimResponse) {
      try parse(String(repeating: "HTTP/1.1 100 C\r\n\r\n", count: 9))
    }
    #expect(throws: HTTPParseError.bodyTooLarge(limit: 10)) { try parse(start + "\r\n01234567890", body: 10) }
  }

  @Test func itDoesNotMatterHowItIsCut() throws {
    let text = Array(
      "HTTP/1.1 100 C\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nA: b\r\n\r\n3\r\nabc\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n"
        .utf8)
    var random = SeededGenerator(seed: 4)
    for _ in 0..<300 {
      var parser = Parser(limits: Parser.Limits(body: 100))
      var rest = text[...]
      while !rest.isEmpty {
        let size = min(rest.count, 1 + random.below(7))
        try parser.append(Array(rest.prefix(size)))
        rest = rest.dropFirst(size)
      }
      #expect(parser.isComplete && parser.body == Array("abc0123456789abcdef".utf8))
    }
  }
}
