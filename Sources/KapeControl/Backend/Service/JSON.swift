import KapeCrypto

/// JSON (RFC 8259), read and written. A whole number is told from others, which `JSONNode` does not.
enum JSON: Sendable, Equatable {
  case null
  case bool(Bool)
  case integer(Int64)
  case number(Double)
  case string(String)
  case array([JSON])
  case object([String: JSON])

  static func optional(_ value: String?) -> JSON { value.map { .string($0) } ?? .null }
  static func strings(_ values: [String]) -> JSON { .array(values.map { .string($0) }) }

  subscript(name: String) -> JSON? {
    if case .object(let members) = self { members[name] } else { nil }
  }
  var string: String? { if case .string(let value) = self { value } else { nil } }
  var integer: Int64? { if case .integer(let value) = self { value } else { nil } }
  var array: [JSON]? { if case .array(let values) = self { values } else { nil } }
  /// nil unless every element is a string.
  var strings: [String]? {
    guard let array else { return nil }
    let strings = array.compactMap(\.string)
    return strings.count == array.count ? strings : nil
  }

  /// Why it is no JSON, and where: line and column, from 1.
  struct Malformed: Error {
    let reason: String
  }

  init(parsing bytes: [UInt8]) throws(Malformed) {
    do {
      self.init(try JSONReader.read(bytes))
    } catch {
      guard case .malformed(let reason, let offset) = error else { throw Malformed(reason: "no JSON") }
      let before = bytes[..<min(offset, bytes.count)]
      let line = before.reduce(1) { $0 + ($1 == 0x0A ? 1 : 0) }
      let column = before.reversed().prefix { $0 != 0x0A }.count + 1
      throw Malformed(reason: "\(reason), in line \(line), column \(column)")
    }
  }

  init(_ node: JSONNode) {
    self =
      switch node {
      case .null: .null
      case .bool(let value): .bool(value)
      case .number(let value): Int64(exactly: value).map { .integer($0) } ?? .number(value)
      case .string(let value): .string(value)
      case .array(let values): .array(values.map { JSON($0) })
      case .object(let members): .object(members.mapValues { JSON($0) })
      }
  }

  /// Without blanks, members in the order of their names.
  var text: String {
    var text = ""
    write(to: &text, indent: nil)
    return text
  }

  /// Indented, for people.
  var indentedText: String {
    var text = ""
    write(to: &text, indent: "")
    return text + "\n"
  }

  var bytes: [UInt8] { Array(text.utf8) }
}

extension JSON: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
  ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
  init(stringLiteral value: String) { self = .string(value) }
  init(integerLiteral value: Int64) { self = .integer(value) }
  init(booleanLiteral value: Bool) { self = .bool(value) }
  init(arrayLiteral elements: JSON...) { self = .array(elements) }
  init(dictionaryLiteral elements: (String, JSON)...) { self = .object(Dictionary(uniqueKeysWithValues: elements)) }
}

extension JSON {
  private func write(to text: inout String, indent: String?) {
    switch self {
    case .null: text += "null"
    case .bool(let value): text += value ? "true" : "false"
    case .integer(let value): text += String(value)
    case .number(let value): text += value.isFinite ? "\(value)" : "null"
    case .string(let value): Self.write(value, to: &text)
    case .array(let values):
      Self.write(values, "[", "]", to: &text, indent) { value, inner, text in value.write(to: &text, indent: inner) }
    case .object(let members):
      Self.write(members.sorted { $0.key < $1.key }, "{", "}", to: &text, indent) { member, inner, text in
        Self.write(member.key, to: &text)
        text += inner == nil ? ":" : ": "
        member.value.write(to: &text, indent: inner)
      }
    }
  }

  private static func write<Element>(
    _ elements: [Element], _ open: String, _ close: String, to text: inout String, _ indent: String?,
    _ element: (Element, String?, inout String) -> Void
  ) {
    text += open
    let inner = indent.map { $0 + "  " }
    for (index, each) in elements.enumerated() {
      if index > 0 { text += "," }
      if let inner { text += "\n" + inner }
      element(each, inner, &text)
    }
    if let indent, !elements.isEmpty { text += "\n" + indent }
    text += close
  }

  private static func write(_ string: String, to text: inout String) {
    text += "\""
    for scalar in string.unicodeScalars {
      switch scalar {
      case "\"": text += "\\\""
      case "\\": text += "\\\\"
      case "\n": text += "\\n"
      case "\r": text += "\\r"
      case "\t": text += "\\t"
      default:
        if scalar.value < 0x20 || scalar.value == 0x7F {
          let digits = String(scalar.value, radix: 16)
          text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
        } else {
          text.unicodeScalars.append(scalar)
        }
      }
    }
    text += "\""
  }
}
