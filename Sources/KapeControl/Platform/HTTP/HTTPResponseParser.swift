/// Reads one answer of HTTP/1.1 (RFC 9110, RFC 9112) however it is cut, strictly: what two readers could take for two
/// different things is refused, and nothing is kept beyond the limits.
package struct HTTPResponseParser: Sendable {
  package struct Limits: Sendable {
    /// Bytes of status line and header lines, those of interim answers and trailers included.
    package var head = 32 * 1024
    package var fields = 128
    package var body: Int
    package var interimResponses = 8

    package init(body: Int) { self.body = body }
  }

  package struct Field: Equatable, Sendable {
    /// As it came; names are compared without regard to case.
    package var name: String
    /// Without the space around it.
    package var value: String
  }

  private enum State {
    case statusLine
    case fields
    case sized(left: Int)
    /// To the end of the connection.
    case unsized
    case chunkSize
    case chunk(left: Int)
    case chunkEnd
    case trailers
    case complete
  }

  private let limits: Limits
  private var state = State.statusLine
  /// The line that is being read, up to its line end.
  private var line: [UInt8] = []
  private var headSize = 0
  private var interim = 0
  private var isHTTP10 = false
  package private(set) var status = 0
  package private(set) var fields: [Field] = []
  package private(set) var body: [UInt8] = []

  package init(limits: Limits) { self.limits = limits }

  /// Whether all of it is there.
  package var isComplete: Bool {
    if case .complete = state { true } else { false }
  }

  /// Whether only the end of the connection can end the body.
  package var endsWithConnection: Bool {
    if case .unsized = state { true } else { false }
  }

  /// Takes what came next.
  package mutating func append(_ bytes: [UInt8]) throws(HTTPParseError) {
    var index = 0
    while index < bytes.count {
      switch state {
      case .statusLine, .fields, .trailers, .chunkSize, .chunkEnd:
        let byte = bytes[index]
        index += 1
        try count(byte)
        if byte == .lineFeed { try endLine() } else { line.append(byte) }
      case .sized(let left):
        let taken = try take(bytes, &index, left)
        state = taken == left ? .complete : .sized(left: left - taken)
      case .chunk(let left):
        let taken = try take(bytes, &index, left)
        state = taken == left ? .chunkEnd : .chunk(left: left - taken)
      case .unsized:
        _ = try take(bytes, &index, bytes.count)
      case .complete:
        throw .excess
      }
    }
  }

  /// The connection ended.
  package mutating func finish() throws(HTTPParseError) {
    switch state {
    case .complete: break
    case .unsized: state = .complete
    default: throw .truncated
    }
  }

  private mutating func take(_ bytes: [UInt8], _ index: inout Int, _ most: Int) throws(HTTPParseError) -> Int {
    let taken = min(most, bytes.count - index)
    guard taken <= limits.body - body.count else { throw .bodyTooLarge(limit: limits.body) }
    body += bytes[index..<(index + taken)]
    index += taken
    return taken
  }

  private mutating func count(_ byte: UInt8) throws(HTTPParseError) {
    switch state {
    case .chunkEnd:
      guard line.isEmpty ? byte == .carriageReturn : byte == .lineFeed else { throw .chunkEnd }
    case .chunkSize:
      // Sixteen digits are more than any size; behind them may be an extension, which nobody reads.
      guard line.count < 256 else { throw .chunkSize }
    default:
      headSize += 1
      guard headSize <= limits.head else { throw .headTooLarge(limit: limits.head) }
    }
  }

  private mutating func endLine() throws(HTTPParseError) {
    guard line.popLast() == .carriageReturn else { throw .controlCharacter }
    let line = self.line
    self.line.removeAll(keepingCapacity: true)
    guard line.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == .tab }) else { throw .controlCharacter }
    switch state {
    case .statusLine:
      (status, isHTTP10) = try HTTPLines.status(line)
      state = .fields
    case .fields where line.isEmpty: try endHead()
    case .fields:
      guard fields.count < limits.fields else { throw .tooManyFields(limit: limits.fields) }
      fields.append(try HTTPLines.field(line))
    case .chunkSize:
      let size = try HTTPLines.chunkSize(line)
      guard size <= limits.body - body.count else { throw .bodyTooLarge(limit: limits.body) }
      state = size == 0 ? .trailers : .chunk(left: size)
    case .chunkEnd: state = .chunkSize
    // Nothing in them is of use here; they have to be right all the same.
    case .trailers where !line.isEmpty: _ = try HTTPLines.field(line)
    case .trailers: state = .complete
    case .sized, .chunk, .unsized, .complete: break
    }
  }

  /// What kind of body follows (RFC 9112, section 6.3).
  private mutating func endHead() throws(HTTPParseError) {
    if status < 200 {
      interim += 1
      guard status != 101, interim <= limits.interimResponses else { throw .interimResponse }
      fields.removeAll()
      state = .statusLine
      return
    }
    let encodings = fields.values(of: "transfer-encoding")
    let lengths = fields.values(of: "content-length")
    let hasNoBody = status == 204 || status == 304
    if !encodings.isEmpty {
      guard lengths.isEmpty else { throw .ambiguousLength }
      guard encodings.count == 1, encodings[0].lowercased() == "chunked", !isHTTP10, !hasNoBody else {
        throw .transferEncoding
      }
      state = .chunkSize
    } else if let text = lengths.first {
      guard lengths.count == 1, let length = HTTPLines.contentLength(text) else { throw .contentLength }
      // Of an answer without a body it says what another would have had.
      guard !hasNoBody else {
        state = .complete
        return
      }
      guard length <= limits.body else { throw .bodyTooLarge(limit: limits.body) }
      state = length == 0 ? .complete : .sized(left: length)
    } else {
      state = hasNoBody ? .complete : .unsized
    }
  }
}

extension [HTTPResponseParser.Field] {
  /// Those of that name, which is given in lower case.
  package func values(of name: String) -> [String] {
    filter { $0.name.lowercased() == name }.map(\.value)
  }
}
