/// Why an answer is no HTTP/1.1 that can be relied on (RFC 9112). It holds nothing of the answer itself.
package enum HTTPParseError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The status line, with what is wrong with it.
  case statusLine
  /// A version other than HTTP/1.0 and HTTP/1.1.
  case version
  /// 101 without a question for it, or no end of interim answers.
  case interimResponse
  /// A carriage return or a line feed alone, or another control character.
  case controlCharacter
  /// A header line that begins with a space: folding, which is out of use (RFC 9112, section 5.2).
  case foldedField
  case fieldName
  case headTooLarge(limit: Int)
  case tooManyFields(limit: Int)
  /// No number, more than one, or one that no body can have.
  case contentLength
  /// Another than `chunked` alone, or in HTTP/1.0, or with an answer that has no body.
  case transferEncoding
  /// Both lengths at once: what lies behind may be meant for somebody else (RFC 9112, section 6.3).
  case ambiguousLength
  case chunkSize
  /// No line end behind a chunk.
  case chunkEnd
  case bodyTooLarge(limit: Int)
  /// More came than the answer says that it has.
  case excess
  /// It ended before the end that it says that it has.
  case truncated

  package var description: String {
    switch self {
    case .statusLine: "the first line is no HTTP status line"
    case .version: "another version of HTTP than 1.0 and 1.1"
    case .interimResponse: "an interim answer that was not asked for, or too many"
    case .controlCharacter: "a control character in the head"
    case .foldedField: "a folded header line"
    case .fieldName: "a header line without a proper name"
    case .headTooLarge(let limit): "a head of more than \(limit) bytes"
    case .tooManyFields(let limit): "more than \(limit) header lines"
    case .contentLength: "a Content-Length that is no single number"
    case .transferEncoding: "a Transfer-Encoding other than chunked"
    case .ambiguousLength: "Content-Length and Transfer-Encoding together"
    case .chunkSize: "a chunk without a proper size"
    case .chunkEnd: "a chunk that does not end where it says"
    case .bodyTooLarge(let limit): "a body of more than \(limit) bytes"
    case .excess: "bytes behind the end"
    case .truncated: "the end is missing"
    }
  }
}
