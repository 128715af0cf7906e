/// The reader of HTTP answers on any bytes: cut anywhere it reads the same, it keeps no more than its limits, and what it
/// accepts is the same answer when it is written anew, with a length or in chunks.

private let limits: HTTPResponseParser.Limits = {
  var limits = HTTPResponseParser.Limits(body: 2000)
  limits.head = 1500
  limits.fields = 20
  return limits
}()

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzHTTPResponse(_ start: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
  let input = UnsafeBufferPointer(start: start, count: size)
  guard let seed = input.first else { return 0 }
  // A copy that ends where the input ends, so that the sanitizer sees a step past it.
  let bytes = Array(input.dropFirst())
  let whole = read(bytes) { bytes.count }
  var state = UInt32(seed)
  let cut = read(bytes) {
    state = state &* 1_664_525 &+ 1_013_904_223
    return Int(state >> 24) % (seed % 4 == 0 ? 1 : 64) + 1
  }
  precondition(whole.error == cut.error, "it matters how the answer is cut: \(whole.error as Any), \(cut.error as Any)")
  check(whole.parser)
  if whole.error == nil {
    precondition(same(whole.parser, cut.parser), "it matters how the answer is cut")
    writeAnew(whole.parser, seed)
  }
  return 0
}

private func read(_ bytes: [UInt8], piece: () -> Int) -> (parser: HTTPResponseParser, error: HTTPParseError?) {
  var parser = HTTPResponseParser(limits: limits)
  do throws(HTTPParseError) {
    var start = 0
    while start < bytes.count {
      let end = min(bytes.count, start + max(1, piece()))
      try parser.append(Array(bytes[start..<end]))
      check(parser)
      start = end
    }
    try parser.finish()
    return (parser, nil)
  } catch {
    precondition(!error.description.isEmpty)
    return (parser, error)
  }
}

private func check(_ parser: HTTPResponseParser) {
  precondition(parser.body.count <= limits.body, "more of a body than may be kept")
  precondition(parser.fields.count <= limits.fields, "more fields than may be kept")
  for field in parser.fields {
    precondition(!field.name.isEmpty && !field.value.utf8.contains { $0 < 0x20 && $0 != 9 || $0 == 0x7F })
  }
}

private func same(_ one: HTTPResponseParser, _ other: HTTPResponseParser) -> Bool {
  one.status == other.status && one.fields == other.fields && one.body == other.body
}

/// The same answer with its body in another form.
private func writeAnew(_ parser: HTTPResponseParser, _ seed: UInt8) {
  precondition(parser.isComplete && (200...599).contains(parser.status))
  let hasNoBody = parser.status == 204 || parser.status == 304
  precondition(!hasNoBody || parser.body.isEmpty, "a body where there can be none")
  let others = parser.fields.filter { !["content-length", "transfer-encoding"].contains($0.name.lowercased()) }
  var head = "HTTP/1.1 \(parser.status)\r\n"
  for field in others { head += "\(field.name): \(field.value)\r\n" }
  let sized = Array((hasNoBody ? head : head + "Content-Length: \(parser.body.count)\r\n").utf8) + Array("\r\n".utf8)
  compare(parser, sized + parser.body, others)
  guard !hasNoBody else { return }
  var chunked = Array((head + "Transfer-Encoding: chunked\r\n\r\n").utf8)
  var rest = parser.body[...]
  while !rest.isEmpty {
    let chunk = rest.prefix(Int(seed) + 1)
    chunked += Array(String(chunk.count, radix: 16).utf8) + Array("\r\n".utf8) + chunk + Array("\r\n".utf8)
    rest = rest.dropFirst(chunk.count)
  }
  compare(parser, chunked + Array("0\r\n\r\n".utf8), others)
}

private func compare(_ parser: HTTPResponseParser, _ bytes: [UInt8], _ fields: [HTTPResponseParser.Field]) {
  let again = read(bytes) { bytes.count }
  // Written anew the head may be longer than what was read.
  if case .headTooLarge = again.error { return }
  if case .tooManyFields = again.error { return }
  precondition(again.error == nil, "what was accepted is refused: \(again.error as Any)")
  precondition(again.parser.body == parser.body && again.parser.status == parser.status, "another answer")
  let left = again.parser.fields.filter { !["content-length", "transfer-encoding"].contains($0.name.lowercased()) }
  precondition(left == fields, "other fields")
}
