/// The lines of an answer's head, each without its line end and without control characters but tabs.
enum HTTPLines {
  /// `HTTP/1.1 200 reason`; the reason may be missing, as may the space before it.
  static func status(_ line: [UInt8]) throws(HTTPParseError) -> (status: Int, isHTTP10: Bool) {
    guard line.starts(with: "HTTP/".utf8) else { throw .statusLine }
    let version = line.dropFirst(5).prefix(3)
    let isHTTP10 = version.elementsEqual("1.0".utf8)
    guard isHTTP10 || version.elementsEqual("1.1".utf8) else { throw .version }
    let rest = line.dropFirst(8)
    guard rest.first == .space else { throw .statusLine }
    let digits = rest.dropFirst().prefix(3)
    let behind = rest.dropFirst(4)
    guard digits.count == 3, let status = decimal(digits), (100...599).contains(status),
      behind.isEmpty || behind.first == .space
    else { throw .statusLine }
    return (status, isHTTP10)
  }

  /// `name: value`.
  static func field(_ line: [UInt8]) throws(HTTPParseError) -> HTTPResponseParser.Field {
    guard line.first != .space, line.first != .tab else { throw .foldedField }
    guard let colon = line.firstIndex(of: .colon), colon > 0, line[..<colon].allSatisfy(\.isTokenCharacter) else {
      throw .fieldName
    }
    var value = line[(colon + 1)...]
    while let first = value.first, first == .space || first == .tab { value.removeFirst() }
    while let last = value.last, last == .space || last == .tab { value.removeLast() }
    return HTTPResponseParser.Field(
      name: String(decoding: line[..<colon], as: UTF8.self), value: String(decoding: value, as: UTF8.self))
  }

  static func contentLength(_ text: String) -> Int? {
    decimal(text.utf8)
  }

  /// Hexadecimal digits; behind them may be extensions.
  static func chunkSize(_ line: [UInt8]) throws(HTTPParseError) -> Int {
    let digits = line.prefix { $0.hexadecimalValue != nil }
    let behind = line[digits.endIndex...]
    guard !digits.isEmpty, behind.isEmpty || behind.first(where: { $0 != .space && $0 != .tab }) == .semicolon else {
      throw .chunkSize
    }
    var size = 0
    for value in digits.compactMap(\.hexadecimalValue) {
      let (shifted, overflow) = size.multipliedReportingOverflow(by: 16)
      guard !overflow else { throw .chunkSize }
      size = shifted + value
    }
    return size
  }

  private static func decimal(_ digits: some Collection<UInt8>) -> Int? {
    guard !digits.isEmpty, digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    return Int(String(decoding: digits, as: UTF8.self))
  }
}

extension UInt8 {
  static let tab = UInt8(ascii: "\t")
  static let lineFeed = UInt8(ascii: "\n")
  static let carriageReturn = UInt8(ascii: "\r")
  static let space = UInt8(ascii: " ")
  static let colon = UInt8(ascii: ":")
  static let semicolon = UInt8(ascii: ";")

  /// What names of headers and methods are made of (RFC 9110, section 5.6.2).
  var isTokenCharacter: Bool {
    switch self {
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
    default: "!#$%&'*+-.^_`|~".utf8.contains(self)
    }
  }

  fileprivate var hexadecimalValue: Int? {
    switch self {
    case 0x30...0x39: Int(self) - 0x30
    case 0x41...0x46: Int(self) - 0x41 + 10
    case 0x61...0x66: Int(self) - 0x61 + 10
    default: nil
    }
  }
}
