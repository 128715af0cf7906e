/// Reads one JSON text (RFC 8259) strictly: a member's name twice in an object, text behind the value, invalid UTF-8,
/// halves of surrogate pairs and numbers out of a Double's range are errors, because two readers of the same token must
/// not see different things. Time and memory are linear in its size; values may be nested 16 deep.
public struct JSONReader: ~Copyable {
  public static let depthLimit = 16

  public enum Failure: Error, Equatable, Sendable {
    /// What is wrong, and the offset in bytes.
    case malformed(String, at: Int)
  }

  /// The value that `bytes` are the text of.
  public static func read(_ bytes: [UInt8]) throws(Failure) -> JSONNode {
    var reader = JSONReader(bytes)
    reader.skipSpace()
    let value = try reader.value(depth: 0)
    reader.skipSpace()
    guard reader.position == bytes.count else { throw reader.failure("text behind the value") }
    return value
  }

  private let bytes: [UInt8]
  private var position = 0

  private init(_ bytes: [UInt8]) { self.bytes = bytes }

  private func failure(_ reason: String) -> Failure { .malformed(reason, at: position) }

  private var next: UInt8? { position < bytes.count ? bytes[position] : nil }

  private mutating func take(_ byte: Character) -> Bool {
    guard let value = byte.asciiValue, next == value else { return false }
    position += 1
    return true
  }

  private mutating func skipSpace() {
    while let byte = next, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { position += 1 }
  }

  private mutating func value(depth: Int) throws(Failure) -> JSONNode {
    guard depth <= Self.depthLimit else { throw failure("nested too deep") }
    switch next {
    case UInt8(ascii: "{"): return try object(depth: depth)
    case UInt8(ascii: "["): return try array(depth: depth)
    case UInt8(ascii: "\""): return .string(try string())
    case UInt8(ascii: "t"): return try word("true", .bool(true))
    case UInt8(ascii: "f"): return try word("false", .bool(false))
    case UInt8(ascii: "n"): return try word("null", .null)
    default: return .number(try number())
    }
  }

  private mutating func word(_ word: StaticString, _ value: JSONNode) throws(Failure) -> JSONNode {
    let text = UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount)
    guard bytes[position...].starts(with: text) else { throw failure("no value") }
    position += text.count
    return value
  }

  private mutating func object(depth: Int) throws(Failure) -> JSONNode {
    position += 1
    var members: [String: JSONNode] = [:]
    skipSpace()
    if take("}") { return .object(members) }
    while true {
      skipSpace()
      guard next == UInt8(ascii: "\"") else { throw failure("no name of a member") }
      let name = try string()
      guard members[name] == nil else { throw failure("a member's name twice") }
      skipSpace()
      guard take(":") else { throw failure("no colon behind a name") }
      skipSpace()
      members[name] = try value(depth: depth + 1)
      skipSpace()
      if take("}") { return .object(members) }
      guard take(",") else { throw failure("no comma between members") }
    }
  }

  private mutating func array(depth: Int) throws(Failure) -> JSONNode {
    position += 1
    var values: [JSONNode] = []
    skipSpace()
    if take("]") { return .array(values) }
    while true {
      skipSpace()
      values.append(try value(depth: depth + 1))
      skipSpace()
      if take("]") { return .array(values) }
      guard take(",") else { throw failure("no comma between values") }
    }
  }

  private mutating func string() throws(Failure) -> String {
    position += 1
    var text: [UInt8] = []
    while let byte = next {
      switch byte {
      case UInt8(ascii: "\""):
        // Names that differ in nothing but their composition would otherwise be one key of a dictionary.
        guard let string = String(validating: text, as: UTF8.self) else { throw failure("no UTF-8") }
        position += 1
        return string
      case UInt8(ascii: "\\"): try escape(into: &text)
      case ..<0x20: throw failure("a control character in a string")
      default:
        text.append(byte)
        position += 1
      }
    }
    throw failure("a string without end")
  }

  private mutating func escape(into text: inout [UInt8]) throws(Failure) {
    position += 1
    guard let byte = next else { throw failure("a string without end") }
    position += 1
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): text.append(byte)
    case UInt8(ascii: "b"): text.append(0x08)
    case UInt8(ascii: "f"): text.append(0x0C)
    case UInt8(ascii: "n"): text.append(0x0A)
    case UInt8(ascii: "r"): text.append(0x0D)
    case UInt8(ascii: "t"): text.append(0x09)
    case UInt8(ascii: "u"):
      var code = try hexadecimal()
      if code & 0xFC00 == 0xD800 {
        guard take("\\"), take("u") else { throw failure("half a surrogate pair") }
        let low = try hexadecimal()
        guard low & 0xFC00 == 0xDC00 else { throw failure("half a surrogate pair") }
        code = 0x10000 + (code & 0x3FF) << 10 + (low & 0x3FF)
      }
      guard let scalar = Unicode.Scalar(code) else { throw failure("half a surrogate pair") }
      text += Array(String(Character(scalar)).utf8)
    default: throw failure("an unknown escape")
    }
  }

  private mutating func hexadecimal() throws(Failure) -> UInt32 {
    var value: UInt32 = 0
    for _ in 0..<4 {
      guard let digit = next.flatMap({ Character(Unicode.Scalar($0)).hexDigitValue }) else {
        throw failure("no hexadecimal digit")
      }
      value = value << 4 | UInt32(digit)
      position += 1
    }
    return value
  }

  private mutating func number() throws(Failure) -> Double {
    let start = position
    _ = take("-")
    if !take("0") { try digits("no value") }
    if take(".") { try digits("no digit") }
    if take("e") || take("E") {
      _ = take("+") || take("-")
      try digits("no digit")
    }
    guard let value = Double(String(decoding: bytes[start..<position], as: UTF8.self)), value.isFinite else {
      throw failure("a number out of range")
    }
    return value
  }

  private mutating func digits(_ reason: String) throws(Failure) {
    guard let byte = next, isDigit(byte) else { throw failure(reason) }
    while let byte = next, isDigit(byte) { position += 1 }
  }

  private func isDigit(_ byte: UInt8) -> Bool { byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9") }
}
