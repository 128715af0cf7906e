import Glibc

/// What a tunnel has changed, in its order, in a file that outlives the process. Each record is written before what it
/// tells of is done, so that everything that was done is in it; undoing what was not done does no harm.
package final class Journal: Sendable {
  package static let heading = "kape-journal 1"

  package let path: String
  private let file: Descriptor

  /// Begins a new one, or goes on with the one that is there.
  package init(_ path: String) throws(SystemError) {
    self.path = path
    let raw = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard raw >= 0 else { throw SystemError(path) }
    let opened = Descriptor(owning: raw)
    if lseek(raw, 0, SEEK_END) == 0 { try Files.write(Array((Self.heading + "\n").utf8), to: opened, path) }
    file = opened
  }

  package func append(_ record: JournalRecord) throws(SystemError) {
    try Files.write(Array((record.line + "\n").utf8), to: file, path)
  }

  /// Appends to another tunnel's.
  package static func append(_ record: JournalRecord, to path: String) throws(SystemError) {
    let turn = RunDirectory.takeTurn()
    defer { RunDirectory.end(turn) }
    let raw = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW)
    guard raw >= 0 else { throw SystemError(path) }
    try Files.write(Array((record.line + "\n").utf8), to: Descriptor(owning: raw), path)
  }

  /// Leaves out what need not be put back any more, and all but the last of equal records, so that the file of a
  /// long-lived tunnel does not grow. Whoever else appends to it waits meanwhile. Go on with the journal that is returned.
  package consuming func compacted(keeping isKept: (JournalRecord) -> Bool) throws(SystemError) -> Journal {
    let turn = RunDirectory.takeTurn()
    defer { RunDirectory.end(turn) }
    var lines: [String] = []
    for line in try (Self.read(path) ?? []).filter(isKept).map(\.line) {
      lines.removeAll { $0 == line }
      lines.append(line)
    }
    let text = ([Self.heading] + lines).joined(separator: "\n") + "\n"
    let scratch = path + ".new"
    try Files.remove(scratch)
    try Files.write(Array(text.utf8), to: scratch)
    guard rename(scratch, path) == 0 else { throw SystemError(path) }
    return try Journal(path)
  }

  /// The records of a file, oldest first; nil when there is none. A last line without an end was never acted upon.
  package static func read(_ path: String) throws(SystemError) -> [JournalRecord]? {
    try Files.text(path).map(records)
  }

  package static func records(_ text: String) -> [JournalRecord] {
    var lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    if !lines.isEmpty { lines.removeLast() }
    guard lines.first == heading[...] else { return [] }
    return lines.dropFirst().compactMap { JournalRecord(line: $0) }
  }
}

/// What a journal's records leave to do, the newest first, and once each.
package struct JournalSummary: Equatable, Sendable {
  package var origin: JournalRecord.Origin?
  package var undo: [JournalRecord] = []
  package var before: [String] = []
  package var after: [String] = []
  package var wasUp = false
  package var wasEnding = false
  package var resolverFileIsWhole = false

  package init(_ records: [JournalRecord]) {
    for record in records {
      switch record {
      case .began(let origin): self.origin = origin
      case .parameter, .resolverFile:
        // Its place is that of the first, what it says that of the last.
        if let index = undo.firstIndex(where: { Self.areAboutTheSame($0, record) }) {
          undo[index] = record
        } else {
          undo.append(record)
        }
      case .ruleRefused(let rule):
        if let index = undo.lastIndex(of: .rule(rule)) { undo.remove(at: index) }
      case .resolverFileWritten: resolverFileIsWhole = true
      case .resolverFileReturning: resolverFileIsWhole = false
      case .downCommand(let command):
        if command.phase == .before { before.append(command.text) } else { after.append(command.text) }
      case .up: wasUp = true
      case .ending: wasEnding = true
      default: undo.append(record)
      }
    }
    undo.reverse()
  }

  private static func areAboutTheSame(_ a: JournalRecord, _ b: JournalRecord) -> Bool {
    if case .parameter(let first, _) = a, case .parameter(let second, _) = b { return first == second }
    if case .resolverFile(let first) = a, case .resolverFile(let second) = b { return first.path == second.path }
    return false
  }

  package var resolverFile: ResolverFileBackup? {
    for case .resolverFile(let backup) in undo { return backup }
    return nil
  }

  /// The value that a parameter had before.
  package func before(_ path: String) -> String? {
    for case .parameter(let found, let before) in undo where found == path { return before }
    return nil
  }
}
