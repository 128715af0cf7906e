/// A request as it came, not yet looked at.
struct HTTPRequest: Sendable {
  var method: String
  /// The target of the request line: path and query, percent-encoded.
  var target: String
  /// Names in lower case.
  var headers: [String: [String]] = [:]
  /// As much of it as the listener's limit allows.
  var body: [UInt8] = []
  /// There was more than that.
  var isBodyTooLarge = false
  /// The other end's address, without its port.
  var client: String

  var path: String { target.prefix { $0 != "?" }.description }

  /// nil: it is not percent-encoded text.
  var query: FormData? {
    guard let mark = target.firstIndex(of: "?") else { return FormData(fields: []) }
    return FormData(parsing: Array(target[target.index(after: mark)...].utf8))
  }

  /// nil: absent, or there more than once.
  func header(_ name: String) -> String? {
    let values = headers[name] ?? []
    return values.count == 1 ? values[0] : nil
  }

  /// The type without parameters, in lower case.
  var contentType: String? {
    header("content-type").map { value in
      value.prefix { $0 != ";" }.trimmingBlanks.lowercased()
    }
  }
}

extension StringProtocol {
  /// Without blanks and tabs at both ends.
  var trimmingBlanks: String {
    var rest = Substring(self)
    while let first = rest.first, first == " " || first == "\t" { rest.removeFirst() }
    while let last = rest.last, last == " " || last == "\t" { rest.removeLast() }
    return String(rest)
  }
}
