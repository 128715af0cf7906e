internal import KapeCrypto

/// Cuts a file into section headers and assignments, as wg(8) and wg-quick(8) do: lines end with a newline, `#` starts a
/// comment anywhere, white space is what isspace(3) says, an assignment is split at its first '='. A byte order mark is
/// skipped, which they do not do.
struct WireGuardConfigurationLexer {
  static let fileLimit = 64 << 20
  static let lineLimit = 1 << 20

  enum Item {
    case section(line: Int)
    case assignment(line: Int)
    /// Neither; the text is not to be quoted, because it may be a key that lost its name.
    case other(line: Int)
    case lineTooLong(line: Int)
    case zeroByte(line: Int)
  }

  /// What belongs to an item, valid during the call only.
  struct Text: ~Copyable {
    /// A header without white space, or the name of a key without white space; empty when it is absurdly long.
    let name: String
    /// Whether the value is cut by a comment.
    let hasComment: Bool
    /// The value without white space at its ends.
    let value: SecretBuffer
    /// The value without any white space.
    let compactValue: SecretBuffer
  }

  /// Names longer than any that is known are not kept.
  private static let nameLimit = 64

  static func start(of bytes: RawSpan) -> Int {
    bytes.byteCount >= 3 && bytes[0] == 0xEF && bytes[1] == 0xBB && bytes[2] == 0xBF ? 3 : 0
  }

  static func forEachItem(of bytes: RawSpan, _ body: (Item, borrowing Text) -> Void) {
    var start = start(of: bytes)
    var line = 0
    while start < bytes.byteCount {
      line += 1
      let end = bytes.firstIndex(of: UInt8(ascii: "\n"), from: start) ?? bytes.byteCount
      readLine(bytes.extracting(start..<end), line, body)
      start = end + 1
    }
  }

  /// Calls `body` once, or not at all for a line without content.
  static func readLine(_ text: RawSpan, _ line: Int, _ body: (Item, borrowing Text) -> Void) {
    guard text.byteCount <= lineLimit else {
      return body(.lineTooLong(line: line), Text(name: "", hasComment: false, value: .init(), compactValue: .init()))
    }
    let comment = text.firstIndex(of: UInt8(ascii: "#"))
    let content = text.extracting(0..<(comment ?? text.byteCount))
    let range = content.trimmedRange
    if range.isEmpty { return }
    let trimmed = content.extracting(range)
    if trimmed.contains(0) {
      return body(.zeroByte(line: line), Text(name: "", hasComment: false, value: .init(), compactValue: .init()))
    }
    if trimmed[0] == UInt8(ascii: "[") {
      let text = Text(name: name(trimmed), hasComment: comment != nil, value: .init(), compactValue: .init())
      return body(.section(line: line), text)
    }
    guard let equals = trimmed.firstIndex(of: UInt8(ascii: "=")) else {
      let text = Text(name: name(trimmed), hasComment: comment != nil, value: .init(), compactValue: .init())
      return body(.other(line: line), text)
    }
    let rest = trimmed.extracting((equals + 1)..<trimmed.byteCount)
    var value = SecretBuffer(capacity: rest.byteCount)
    value.append(rest.extracting(rest.trimmedRange))
    var compact = SecretBuffer(capacity: rest.byteCount)
    appendCompact(rest, to: &compact)
    let text = Text(
      name: name(trimmed.extracting(0..<equals)), hasComment: comment != nil, value: value, compactValue: compact)
    body(.assignment(line: line), text)
  }

  private static func name(_ text: RawSpan) -> String {
    guard text.byteCount <= nameLimit else { return "" }
    var compact = SecretBuffer(capacity: nameLimit)
    appendCompact(text, to: &compact)
    return compact.withBytes { $0.utf8String } ?? ""
  }

  private static func appendCompact(_ text: RawSpan, to buffer: inout SecretBuffer) {
    var index = 0
    while index < text.byteCount {
      if !text[index].isASCIISpace { buffer.append(text[index]) }
      index += 1
    }
  }
}
