/// Collects diagnostics of one file up to a limit: a hostile file gets a bounded answer.
struct DiagnosticList {
  static let limit = 100

  let file: String
  private var found: [Diagnostic] = []
  private var errorCount = 0
  private var leftOut = 0

  init(file: String) {
    self.file = file
  }

  var hasErrors: Bool { errorCount > 0 }

  mutating func error(_ line: Int?, _ key: String?, _ reason: String, _ remedy: String) {
    errorCount += 1
    append(Diagnostic(.error, file: file, line: line, key: key, reason: reason, remedy: remedy))
  }

  mutating func warning(_ line: Int?, _ key: String?, _ reason: String, _ remedy: String) {
    append(Diagnostic(.warning, file: file, line: line, key: key, reason: reason, remedy: remedy))
  }

  private mutating func append(_ diagnostic: Diagnostic) {
    if found.count < Self.limit { found.append(diagnostic) } else { leftOut += 1 }
  }

  var all: [Diagnostic] {
    var sorted = found.enumerated().sorted {
      ($0.element.line ?? 0, $0.offset) < ($1.element.line ?? 0, $1.offset)
    }.map(\.element)
    if leftOut > 0 {
      sorted.append(
        Diagnostic(
          hasErrors ? .error : .warning, file: file, line: nil, key: nil,
          reason: "\(leftOut) more findings are left out",
          remedy: "correct those above first"))
    }
    return sorted
  }
}
