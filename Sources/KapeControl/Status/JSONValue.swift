/// JSON (RFC 8259): a small value and its text, because a tunnel process does not map a whole library for one answer.
package enum JSONValue: Equatable, Sendable {
  case null
  case bool(Bool)
  case unsigned(UInt64)
  /// Below zero.
  case negative(Int64)
  case string(String)
  case array([JSONValue])
  /// Members in the order in which they are written.
  case object([Member])
  /// JSON already, indented for where it comes to stand. Read: a number that is no integer of 64 bits.
  case verbatim(String)

  package struct Member: Equatable, Sendable {
    package var name: String
    package var value: JSONValue

    package init(_ name: String, _ value: JSONValue) {
      self.name = name
      self.value = value
    }
  }

  package static func number(_ value: some UnsignedInteger) -> JSONValue { .unsigned(UInt64(value)) }

  package static func strings(_ values: some Sequence<some CustomStringConvertible>) -> JSONValue {
    .array(values.map { .string($0.description) })
  }

  /// A string, or null.
  package static func optional(_ value: (some CustomStringConvertible)?) -> JSONValue {
    value.map { .string($0.description) } ?? .null
  }

  /// On one line, without blanks.
  package var compactText: String {
    var text = ""
    writeCompact(to: &text)
    return text
  }

  private func writeCompact(to text: inout String) {
    switch self {
    case .array(let values):
      text += "["
      for (index, value) in values.enumerated() {
        if index > 0 { text += "," }
        value.writeCompact(to: &text)
      }
      text += "]"
    case .object(let members):
      text += "{"
      for (index, member) in members.enumerated() {
        if index > 0 { text += "," }
        Self.write(member.name, to: &text)
        text += ":"
        member.value.writeCompact(to: &text)
      }
      text += "}"
    case .null, .bool, .unsigned, .negative, .string, .verbatim: write(to: &text, indent: "")
    }
  }

  /// Indented by two blanks a level, one member or element a line.
  package var text: String { text(indent: "") }

  /// The same for a place that is indented already.
  package func text(indent: String) -> String {
    var text = ""
    write(to: &text, indent: indent)
    return text
  }

  private func write(to text: inout String, indent: String) {
    switch self {
    case .null: text += "null"
    case .bool(let value): text += value ? "true" : "false"
    case .unsigned(let value): text += String(value)
    case .negative(let value): text += String(value)
    case .string(let value): Self.write(value, to: &text)
    case .verbatim(let value): text += value
    case .array(let values):
      Self.write(values.count, "[", "]", to: &text, indent) { index, inner, text in
        values[index].write(to: &text, indent: inner)
      }
    case .object(let members):
      Self.write(members.count, "{", "}", to: &text, indent) { index, inner, text in
        Self.write(members[index].name, to: &text)
        text += ": "
        members[index].value.write(to: &text, indent: inner)
      }
    }
  }

  private static func write(
    _ count: Int, _ open: String, _ close: String, to text: inout String, _ indent: String,
    _ element: (Int, String, inout String) -> Void
  ) {
    text += open
    let inner = indent + "  "
    for index in 0..<count {
      text += (index == 0 ? "\n" : ",\n") + inner
      element(index, inner, &text)
    }
    text += count == 0 ? close : "\n" + indent + close
  }

  private static func write(_ string: String, to text: inout String) {
    text += "\""
    for scalar in string.unicodeScalars {
      switch scalar {
      case "\"": text += "\\\""
      case "\\": text += "\\\\"
      case "\n": text += "\\n"
      case "\t": text += "\\t"
      case "\r": text += "\\r"
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
