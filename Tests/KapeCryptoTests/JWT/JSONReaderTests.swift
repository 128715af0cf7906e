import KapeCrypto
import Testing

private func read(_ text: String) throws -> JSONNode { try JSONReader.read(Array(text.utf8)) }

@Suite struct JSONReaderTests {
  @Test(
    arguments: [
      ("null", JSONNode.null), (" true ", .bool(true)), ("false", .bool(false)), ("0", .number(0)),
      ("-0.5e+2", .number(-50)), ("1E3", .number(1000)), ("12.25", .number(12.25)), (#""""#, .string("")),
      (#""a\"\\\/\b\f\n\r\tAé😀é""#, .string("a\"\\/\u{8}\u{C}\n\r\tA\u{E9}\u{1F600}é")),
      ("[]", .array([])), ("[1, [2] ,3]", .array([.number(1), .array([.number(2)]), .number(3)])),
      ("{}", .object([:])),
      (#"{"a":{"b":[null]}, "c" : "d"}"#, .object(["a": .object(["b": .array([.null])]), "c": .string("d")])),
    ])
  func values(_ text: String, _ value: JSONNode) throws { #expect(try read(text) == value) }

  @Test(
    arguments: [
      "", " ", "nul", "nullx", "tru", "01", "-", "1.", ".5", "1e", "+1", "0x1", "NaN", "Infinity", "1e400", "\"",
      "\"\u{1}\"", "\"\n\"", #""\x""#, #""\u12""#, #""\u12g4""#, #""\uD800""#, #""\uD800A""#, #""\uDC00""#,
      "[", "[1", "[1,]", "[,1]", "[1 2]", "{", "{1:2}", #"{"a"}"#, #"{"a":}"#, #"{"a":1,}"#, #"{"a":1 "b":2}"#,
      #"{"a":1,"a":1}"#, #"{"a":1,"\u0061":2}"#, "1 2", "{} {}", "[]]", "\u{FEFF}1", "'a'", "// c\n1",
    ])
  func whatIsNoJSONIsRefused(_ text: String) {
    #expect(throws: JSONReader.Failure.self) { try read(text) }
  }

  @Test func bytesThatAreNoUTF8AreRefused() {
    for bytes: [UInt8] in [[0xFF], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80], [0xE2, 0x82]] {
      #expect(throws: JSONReader.Failure.self) { try JSONReader.read([0x22] + bytes + [0x22]) }
    }
  }

  @Test func valuesMayBeNestedSixteenDeep() throws {
    func nested(_ depth: Int) -> String {
      String(repeating: "[", count: depth) + "1" + String(repeating: "]", count: depth)
    }
    _ = try read(nested(16))
    #expect(throws: JSONReader.Failure.malformed("nested too deep", at: 17)) { try read(nested(17)) }
    #expect(throws: JSONReader.Failure.self) { try read(String(repeating: "{\"a\":", count: 100_000)) }
  }

  @Test func whatIsReadCanBeAskedFor() throws {
    let value = try read(#"{"s": "x", "n": 2, "b": true, "l": ["a", "b"], "m": ["a", 1]}"#)
    #expect(value["s"]?.string == "x" && value["n"]?.number == 2 && value["b"]?.bool == true)
    #expect(value["l"]?.strings == ["a", "b"] && value["m"]?.strings == nil && value["m"]?.array?.count == 2)
    #expect(value["none"] == nil && value["s"]?["x"] == nil && value["s"]?.number == nil)
  }
}
