internal import CSQLite
import KapeControl

/// What SQLite refused to do. No value of a statement is in it.
struct DatabaseError: Error, CustomStringConvertible {
  let code: Int32
  let reason: String

  var description: String { "database: \(reason) (\(code))" }
}

/// An SQLite database in one file, used by one actor. Statements are literals: nothing that came from outside ever
/// becomes part of one.
final class Database {
  private let handle: OpaquePointer
  private var prepared: [String: OpaquePointer] = [:]
  private var depth = 0

  /// Opens or makes it. Every change is on the disk when a call returns, and one that a killed process left half made is
  /// undone at the next start (write-ahead log).
  init(path: String) throws {
    var opened: OpaquePointer?
    let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
    let status = sqlite3_open_v2(path, &opened, flags, nil)
    guard let opened else { throw DatabaseError(code: status, reason: "no memory") }
    handle = opened
    guard status == SQLITE_OK else {
      let reason = String(cString: sqlite3_errmsg(opened))
      sqlite3_close_v2(opened)
      throw DatabaseError(code: status, reason: "\(path): \(reason)")
    }
    sqlite3_busy_timeout(handle, 2000)
    do {
      for pragma: StaticString in [
        "PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", "PRAGMA foreign_keys = ON",
        "PRAGMA secure_delete = ON", "PRAGMA trusted_schema = OFF",
      ] {
        try run(pragma)
      }
    } catch {
      finalizeAll()
      sqlite3_close_v2(opened)
      throw error
    }
  }

  deinit {
    finalizeAll()
    sqlite3_close_v2(handle)
  }

  private func finalizeAll() {
    for statement in prepared.values { sqlite3_finalize(statement) }
    prepared = [:]
  }

  /// Runs a statement; rows are passed over.
  func run(_ sql: StaticString, _ values: SQLValue...) throws {
    _ = try step(sql, values) { _ in true }
  }

  /// How many rows the last statement changed.
  var changes: Int { Int(sqlite3_changes(handle)) }

  func rows<Value>(_ sql: StaticString, _ values: SQLValue..., map: (Row) throws -> Value) throws -> [Value] {
    var result: [Value] = []
    _ = try step(sql, values) { row in
      result.append(try map(row))
      return true
    }
    return result
  }

  /// The first row; nil when there is none.
  func row<Value>(_ sql: StaticString, _ values: SQLValue..., map: (Row) throws -> Value) throws -> Value? {
    var result: Value?
    _ = try step(sql, values) { row in
      result = try map(row)
      return false
    }
    return result
  }

  /// All of `body` or nothing of it.
  func transaction<Value>(_ body: () throws -> Value) throws -> Value {
    precondition(depth == 0, "transactions do not nest")
    try run("BEGIN IMMEDIATE")
    depth = 1
    defer { depth = 0 }
    do {
      let value = try body()
      try run("COMMIT")
      return value
    } catch {
      // Where the failure ended the transaction already, this fails, and nothing is lost.
      try? run("ROLLBACK")
      throw error
    }
  }

  /// Several statements that take no values.
  func script(_ sql: StaticString) throws {
    guard sqlite3_exec(handle, sql.description, nil, nil, nil) == SQLITE_OK else { throw failure() }
  }

  private func step(_ sql: StaticString, _ values: [SQLValue], _ body: (Row) throws -> Bool) throws {
    let statement = try prepare(sql)
    defer {
      sqlite3_reset(statement)
      sqlite3_clear_bindings(statement)
    }
    for (index, value) in values.enumerated() { try bind(value, to: Int32(index + 1), of: statement) }
    while true {
      switch sqlite3_step(statement) {
      case SQLITE_ROW: if try !body(Row(statement: statement)) { return }
      case SQLITE_DONE: return
      default: throw failure()
      }
    }
  }

  private func prepare(_ sql: StaticString) throws -> OpaquePointer {
    let text = sql.description
    if let statement = prepared[text] { return statement }
    var statement: OpaquePointer?
    guard sqlite3_prepare_v3(handle, text, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil) == SQLITE_OK,
      let statement
    else { throw failure() }
    prepared[text] = statement
    return statement
  }

  private func bind(_ value: SQLValue, to index: Int32, of statement: OpaquePointer) throws {
    let status =
      switch value {
      case .null: sqlite3_bind_null(statement, index)
      case .integer(let value): sqlite3_bind_int64(statement, index, value)
      case .text(var value):
        value.withUTF8 { text in
          text.withMemoryRebound(to: CChar.self) {
            csqlite_bind_text(statement, index, $0.baseAddress ?? emptyText, Int32($0.count))
          }
        }
      case .blob(let value):
        value.withUnsafeBytes { csqlite_bind_blob(statement, index, $0.baseAddress, Int32($0.count)) }
      }
    guard status == SQLITE_OK else { throw failure() }
  }

  private var emptyText: UnsafePointer<CChar> {
    UnsafeRawPointer(StaticString("").utf8Start).assumingMemoryBound(to: CChar.self)
  }

  private func failure() -> DatabaseError {
    DatabaseError(code: sqlite3_extended_errcode(handle), reason: String(cString: sqlite3_errmsg(handle)))
  }

  /// A row of an answer, valid while it is handed out; columns count from 0.
  struct Row {
    fileprivate let statement: OpaquePointer

    func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(statement, column) }
    func bool(_ column: Int32) -> Bool { integer(column) != 0 }
    func isNull(_ column: Int32) -> Bool { sqlite3_column_type(statement, column) == SQLITE_NULL }
    func optionalInteger(_ column: Int32) -> Int64? { isNull(column) ? nil : integer(column) }
    func optionalText(_ column: Int32) -> String? { isNull(column) ? nil : text(column) }
    func text(_ column: Int32) -> String { String(decoding: blob(column), as: UTF8.self) }
    func blob(_ column: Int32) -> [UInt8] {
      guard let start = sqlite3_column_blob(statement, column) else { return [] }
      return Array(UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(statement, column))))
    }
  }
}
