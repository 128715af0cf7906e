import Testing

@testable import KapePlatform

@Suite struct HTTPTargetTests {
  private func target(_ url: String, query: [String: String] = [:], plain: Bool = false) throws -> HTTPTarget {
    try HTTPTarget(url, query: query, allowsPlainHTTP: plain)
  }

  @Test func aQueryIsEncodedToTheUnreservedCharacters() throws {
    let made = try target("https://h.test/addKey", query: ["pubkey": "a+/b==", "pt": "x y&z=ä", "-._~": "Z9"])
    #expect(made.path == "/addKey?-._~=Z9&pt=x%20y%26z%3D%C3%A4&pubkey=a%2B%2Fb%3D%3D")
    #expect(try target("https://h.test?a=b", query: ["c": "\u{1}"]).path == "/?a=b&c=%01")
  }

  @Test func hostsAndPorts() throws {
    let name = try target("https://h.test")
    #expect(name.host == "h.test" && name.port == 443 && name.authority == "h.test" && name.name == "h.test:443")
    let six = try target("https://[2001:db8::1]:1337/x#part")
    #expect(six.host == "2001:db8::1" && six.port == 1337 && six.authority == "[2001:db8::1]:1337" && six.path == "/x")
    #expect(try target("http://h.test:8080/", plain: true).authority == "h.test:8080")
    #expect(try target("http://h.test", plain: true).port == 80)
  }

  @Test(
    arguments: [
      "", "h.test", "https://", "ftp://h.test/", "https://h.test:0/", "https://h.test:65536/", "https://h.test/a b",
      "https://h.test/\r\nX: y", "https://user@h.test/", "https://user:secret@h.test/", "https://h.te st/",
      "https://h%00.test/", "https://bücher.test/", "https://h.test/%zz",
    ])
  func refuses(_ url: String) {
    let error = #expect(throws: KapeHTTPError.self) { try target(url) }
    guard case .badURL = error?.cause else { return #expect(error == nil, "not a bad URL") }
    #expect(error?.description.contains("secret") == false)
  }

  @Test func plainHTTPOnlyWhenItIsAskedFor() {
    let error = #expect(throws: KapeHTTPError.self) { try target("http://h.test:81/") }
    #expect(error == KapeHTTPError(host: "h.test:81", cause: .plainHTTPRefused))
  }

  @Test(
    arguments: [
      ["Host": "other"], ["content-LENGTH": "5"], ["Transfer-Encoding": "chunked"], ["Connection": "keep-alive"],
      ["A b": "c"], ["": "c"], ["A": "b\r\nX: y"], ["A": "b\nX: y"], ["A": "b\0"], ["Ä": "b"],
    ])
  func headersCannotMakeASecondRequest(_ headers: [String: String]) throws {
    let target = try target("https://h.test/")
    let error = #expect(throws: KapeHTTPError.self) { try HTTPRequest(.get, target, headers: headers) }
    guard case .badRequest = error?.cause else { return #expect(error == nil, "not a bad request") }
  }

  @Test func aRequestIsWhatItShouldBe() throws {
    let request = try HTTPRequest(
      .post, try target("https://h.test:8443/a?b=c"), headers: ["X-B": "2", "Authorization": "t"],
      body: "hello".data(using: .utf8))
    let text = request.bytes().withBytes { String(decoding: $0.withUnsafeBytes { Array($0) }, as: UTF8.self) }
    #expect(
      text == """
        POST /a?b=c HTTP/1.1\r
        Host: h.test:8443\r
        Connection: close\r
        User-Agent: Kape\r
        Authorization: t\r
        X-B: 2\r
        Content-Length: 5\r
        \r
        hello
        """)
  }
}
