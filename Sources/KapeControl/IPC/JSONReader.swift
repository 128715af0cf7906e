/// Reads JSON (RFC 8259) that a stranger sent: whole, strictly, within limits, without recursion that he could drive
/// deep. A name twice in one object is refused, since readers differ in which they take.
package struct JSONReader {
  package struct Limits: Sendable {
    /// Arrays and objects within each other.
    package var depth = 16
    /// Values in all.
    package var values = 65_536

    package init() {}
  }

  package struct Failure: Error, Equatable, CustomStringConvertible {
    package var reason: String
    /// Bytes from the beginning.
    package var offset: Int

    package var description: String { "\(reason) at byte \(offset)" }
  }

  private let bytes: UnsafeRawBufferPointer
  private let limits: Limits
  private var offset = 0
  private var values = 0

  private init(_ bytes: UnsafeRawBufferPointer, _ limits: Limits) {
    self.bytes = bytes
    self.limits = limits
  }

  package static func read(_ bytes: [UInt8], _ limits: Limits = Limits()) throws(Failure) -> JSONValue {
    // Typed throws do not pass through the closure's generic result.
    let result: Result<JSONValue, Failure> = bytes.withUnsafeBytes { bytes in
      var reader = JSONReader(bytes, limits)
      do throws(Failure) { return .success(try reader.document()) } catch { return .failure(error) }
    }
    return try result.get()
  }

  private mutating func document() throws(Failure) -> JSONValue {
    let value = try value(depth: 0)
    skipBlanks()
    guard offset == bytes.count else { throw failure("something follows the value") }
    return value
  }

  private func failure(_ reason: String) -> Failure { Failure(reason: reason, offset: offset) }

  private var next: UInt8? { offset < bytes.count ? bytes[offset] : nil }

  private mutating func skipBlanks() {
    while let byte = next, byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D { offset += 1 }
  }

  private mutating func take(_ byte: UInt8) -> Bool {
    guard next == byte else { return false }
    offset += 1
    return true
  }

  // MARK: Values

  private mutating func value(depth: Int) throws(Failure) -> JSONValue {
    skipBlanks()
    values += 1
    guard values <= limits.values else { throw failure("more than \(limits.values) values") }
    guard let first = next else { throw failure("a value is missing") }
    switch first {
    case UInt8(ascii: "{"): return try object(depth: depth + 1)
    case UInt8(ascii: "["): return try array(depth: depth + 1)
    case UInt8(ascii: "\""): return .string(try string())
    case UInt8(ascii: "t"): return try word("true", .bool(true))
    case UInt8(ascii: "f"): return try word("false", .bool(false))
    case UInt8(ascii: "n"): return try word("null", .null)
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return try number()
    default: throw failure("no value begins so")
    }
  }

  private mutating func word(_ text: StaticString, _ value: JSONValue) throws(Failure) -> JSONValue {
    for index in 0..<text.utf8CodeUnitCount {
      guard take(text.utf8Start[index]) else { throw failure("no value begins so") }
    }
    return value
  }

  private mutating func array(depth: Int) throws(Failure) -> JSONValue {
    guard depth <= limits.depth else { throw failure("deeper than \(limits.depth)") }
    offset += 1
    skipBlanks()
    if take(UInt8(ascii: "]")) { return .array([]) }
    var elements: [JSONValue] = []
    while true {
      elements.append(try value(depth: depth))
      skipBlanks()
      if take(UInt8(ascii: "]")) { return .array(elements) }
      guard take(UInt8(ascii: ",")) else { throw failure("',' or ']' is missing") }
    }
  }

  private mutating func object(depth: Int) throws(Failure) -> JSONValue {
    guard depth <= limits.depth else { throw failure("deeper than \(limits.depth)") }
    offset += 1
    skipBlanks()
    if take(UInt8(ascii: "}")) { return .object([]) }
    var members: [JSONValue.Member] = []
    var names: Set<String> = []
    while true {
      skipBlanks()
      guard next == UInt8(ascii: "\"") else { throw failure("a name is missing") }
      let name = try string()
      guard names.insert(name).inserted else { throw failure("a name is there twice") }
      skipBlanks()
      guard take(UInt8(ascii: ":")) else { throw failure("':' is missing") }
      members.append(.init(name, try value(depth: depth)))
      skipBlanks()
      if take(UInt8(ascii: "}")) { return .object(members) }
      guard take(UInt8(ascii: ",")) else { throw failure("',' or '}' is missing") }
    }
  }

  private mutating func digits() -> Int {
    let start = offset
    while let byte = next, byte >= 0x30, byte <= 0x39 { offset += 1 }
    return offset - start
  }

  private mutating func number() throws(Failure) -> JSONValue {
    let start = offset
    let isNegative = take(UInt8(ascii: "-"))
    let leadsWithZero = next == UInt8(ascii: "0")
    let count = digits()
    guard count > 0, count == 1 || !leadsWithZero else { throw failure("no number begins so") }
    var isInteger = true
    if take(UInt8(ascii: ".")) {
      isInteger = false
      guard digits() > 0 else { throw failure("digits are missing") }
    }
    if take(UInt8(ascii: "e")) || take(UInt8(ascii: "E")) {
      isInteger = false
      if !take(UInt8(ascii: "+")) { _ = take(UInt8(ascii: "-")) }
      guard digits() > 0 else { throw failure("digits are missing") }
    }
    let text = String(decoding: bytes[start..<offset], as: UTF8.self)
    if isInteger, !isNegative, let value = UInt64(text) { return .unsigned(value) }
    if isInteger, isNegative, let value = Int64(text) { return value == 0 ? .unsigned(0) : .negative(value) }
    return .verbatim(text)
  }

  // MARK: Strings

  private mutating func string() throws(Failure) -> String {
    offset += 1
    var text: [UInt8] = []
    while let byte = next {
      switch byte {
      case UInt8(ascii: "\""):
        offset += 1
        guard let string = String(validating: text, as: UTF8.self) else { throw failure("a string is not UTF-8") }
        return string
      case UInt8(ascii: "\\"):
        offset += 1
        text.append(contentsOf: try escape())
      case 0..<0x20: throw failure("a control character in a string")
      default:
        text.append(byte)
        offset += 1
      }
    }
    throw failure("a string has no end")
  }

  private mutating func escape() throws(Failure) -> [UInt8] {
    guard let byte = next else { throw failure("a string has no end") }
    offset += 1
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return [byte]
    case UInt8(ascii: "b"): return [0x08]
    case UInt8(ascii: "f"): return [0x0C]
    case UInt8(ascii: "n"): return [0x0A]
    case UInt8(ascii: "r"): return [0x0D]
    case UInt8(ascii: "t"): return [0x09]
    case UInt8(ascii: "u"): return Array(String(Character(try scalar())).utf8)
    default: throw failure("no such escape")
    }
  }

  private mutating func scalar() throws(Failure) -> Unicode.Scalar {
    let first = try hexadecimal()
    var value = first
    if (0xD800..<0xDC00).contains(first) {
      guard take(UInt8(ascii: "\\")), take(UInt8(ascii: "u")) else { throw failure("half a surrogate pair") }
      let second = try hexadecimal()
      guard (0xDC00..<0xE000).contains(second) else { throw failure("half a surrogate pair") }
      value = 0x10000 + (first - 0xD800) << 10 + (second - 0xDC00)
    }
    guard let scalar = Unicode.Scalar(value) else { throw failure("half a surrogate pair") }
    return scalar
  }

  private mutating func hexadecimal() throws(Failure) -> UInt32 {
    var value: UInt32 = 0
    for _ in 0..<4 {
      guard let byte = next, let digit = Character(Unicode.Scalar(byte)).hexDigitValue else {
        throw failure("four hexadecimal digits are missing")
      }
      value = value << 4 | UInt32(digit)
      offset += 1
    }
    return value
  }
}
