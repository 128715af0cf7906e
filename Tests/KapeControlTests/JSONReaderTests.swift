import KapeControl
import Testing

@Suite struct JSONReaderTests {
  private func read(_ text: String) throws -> JSONValue { try JSONReader.read(Array(text.utf8)) }

  @Test func everyKindOfValueReadsBack() throws {
    let text = #"{"a":[1,-2,true,false,null,"x\"\\\né"],"b":{},"c":[],"d":18446744073709551615,"e":1.5e3}"#
    let value = try read(text)
    #expect(
      value.compactText == #"{"a":[1,-2,true,false,null,"x\"\\\né"],"b":{},"c":[],"d":18446744073709551615,"e":1.5e3}"#)
    #expect(try read(value.text) == value, "indented, it is the same value")
  }

  @Test func blanksAndEscapesMeanWhatTheyDo() throws {
    #expect(try read(" \t\r\n{ \"a\" : [ 1 , 2 ] } ") == .object([.init("a", .array([.unsigned(1), .unsigned(2)]))]))
    #expect(try read(#""Aé\/\b\f\n\r\t""#) == .string("Aé/\u{8}\u{c}\n\r\t"))
    #expect(try read(#""\uD83D\uDE00""#) == .string("😀"))
    #expect(try read("-0") == .unsigned(0))
    #expect(try read("-9223372036854775808") == .negative(.min))
  }

  @Test func numbersThatAreNoIntegersStayAsTheyAre() throws {
    for text in ["0.5", "-1.25", "1e9", "1E+9", "2e-3", "18446744073709551616", "-9223372036854775809"] {
      #expect(try read(text) == .verbatim(text))
    }
  }

  @Test(arguments: [
    "", " ", "{", "[", "[1", "[1,", "[1,]", "[,1]", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{a:1}", "{'a':1}", "1 2",
    "tru", "nulL", "+1", "01", "-", "-a", "1.", ".5", "1e", "1e+", "\"", "\"\\\"", "\"\\x\"", "\"\\u12\"",
    "\"\\u12g4\"",
    "\"\\uD800\"", "\"\\uD800\\u0041\"", "\"\\uDC00\"", "\"a\nb\"", "{\"a\":1,\"a\":2}", "[1}", "{\"a\":1]",
    "\u{FEFF}1",
    "// 1", "NaN", "Infinity",
  ])
  func whatIsNoJSONIsRefused(_ text: String) {
    #expect(throws: JSONReader.Failure.self) { try read(text) }
  }

  @Test func whatIsNotUTF8IsRefused() {
    for bytes: [UInt8] in [[0xFF], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xE2, 0x82]] {
      #expect(throws: JSONReader.Failure.self) { try JSONReader.read([0x22] + bytes + [0x22]) }
    }
  }

  @Test func depthAndNumberOfValuesAreBounded() throws {
    let nested = { (depth: Int) in String(repeating: "[", count: depth) + String(repeating: "]", count: depth) }
    #expect(throws: Never.self) { try read(nested(16)) }
    #expect(throws: JSONReader.Failure.self) { try read(nested(17)) }
    #expect(throws: JSONReader.Failure.self) { try read(String(repeating: "{\"a\":", count: 1 << 17)) }
    var limits = JSONReader.Limits()
    limits.values = 4
    #expect(throws: Never.self) { try JSONReader.read(Array("[1,2,3]".utf8), limits) }
    #expect(throws: JSONReader.Failure.self) { try JSONReader.read(Array("[1,2,3,4]".utf8), limits) }
  }

  @Test func base64ReadsBackAndHasOneForm() {
    for size in 0..<70 {
      let bytes = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 73 &+ 5) }
      #expect(Base64.decode(Base64.encode(bytes)) == bytes)
    }
    #expect(Base64.encode(Array("foob".utf8)) == "Zm9vYg==")
    for text in ["Zg", "Zg=", "Zg===", "Zh==", "Zm9=", "Z===", "====", "=Zg=", "Zg==Zg==", "Zm9vYg= ", "Zm9-", "Zm\n9"]
    {
      #expect(Base64.decode(text) == nil, "\(text)")
    }
  }

  @Test func fieldsAreTakenByKindAndTheRestIsNamed() throws {
    var fields = try JSONFields(
      try read(#"{"s":"x","n":7,"b":true,"l":["a","b"],"z":null,"o":{"p":1},"d":"Zg=="}"#), "it")
    #expect(try fields.string("s", limit: 1) == "x")
    #expect(try fields.unsigned("n", limit: 7) == 7)
    #expect(try fields.bool("b"))
    #expect(try fields.texts("l", limit: 2, "a letter") { $0 } == ["a", "b"])
    #expect(try fields.optionalString("z", limit: 1) == nil)
    #expect(try fields.data("d", limit: 1) == [0x66])
    #expect { try fields.end() } throws: { "\($0)" == "it.o: there is no such member" }
    var inner = try #require(try fields.object("o"))
    #expect(try inner.signed("p") == 1)
    try inner.end()
    try fields.end()
  }

  @Test func fieldsOfAnotherKindOrSizeAreNamed() throws {
    let value = try read(#"{"s":"xy","n":8,"l":["a",1]}"#)
    func fault(_ body: (inout JSONFields) throws -> Void) -> String {
      do {
        var fields = try JSONFields(value, "it")
        try body(&fields)
        return "-"
      } catch {
        return "\(error)"
      }
    }
    #expect(fault { _ = try $0.string("s", limit: 1) } == "it.s: longer than 1 bytes")
    #expect(fault { _ = try $0.string("q", limit: 1) } == "it.q: it is missing")
    #expect(fault { _ = try $0.string("n", limit: 9) } == "it.n: a string is expected")
    #expect(fault { _ = try $0.unsigned("n", limit: 7) } == "it.n: a whole number up to 7 is expected")
    #expect(fault { _ = try $0.bool("n") } == "it.n: true or false is expected")
    #expect(fault { _ = try $0.array("l", limit: 1) } == "it.l: more than 1 elements")
    #expect(fault { _ = try $0.texts("l", limit: 2, "a letter") { $0 } } == "it.l[1]: a letter is expected")
    #expect(fault { _ = try $0.data("s", limit: 9) } == "it.s: base64 is expected")
  }
}
