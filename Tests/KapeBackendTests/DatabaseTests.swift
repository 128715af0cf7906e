import Foundation
import Testing

@testable import KapeBackend

@Suite struct DatabaseTests {
  private static func fresh() -> String {
    FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString + ".db").path
  }

  @Test func valuesComeBackAsTheyWent() throws {
    let path = Self.fresh()
    defer { try? FileManager.default.removeItem(atPath: path) }
    let database = try Database(path: path)
    try database.run("CREATE TABLE t (a, b, c, d)")
    for text in ["", "'; DROP TABLE t; --", "é\u{0}x", String(repeating: "y", count: 100_000)] {
      try database.run("DELETE FROM t")
      try database.run("INSERT INTO t VALUES (?, ?, ?, ?)", .text(text), .integer(.min), .blob(Array(text.utf8)), nil)
      let row = try database.row("SELECT * FROM t WHERE a = ?", .text(text)) {
        ($0.text(0), $0.integer(1), $0.blob(2), $0.optionalText(3))
      }
      #expect(row?.0 == text)
      #expect(row?.1 == .min)
      #expect(row?.2 == Array(text.utf8))
      #expect(row?.3 == nil)
    }
  }

  @Test func aTransactionIsAllOrNothing() throws {
    struct Stop: Error {}
    let path = Self.fresh()
    defer { try? FileManager.default.removeItem(atPath: path) }
    let database = try Database(path: path)
    try database.run("CREATE TABLE t (a INTEGER PRIMARY KEY)")
    #expect(throws: Stop.self) {
      try database.transaction {
        try database.run("INSERT INTO t VALUES (1)")
        throw Stop()
      }
    }
    #expect(throws: DatabaseError.self) {
      try database.transaction {
        try database.run("INSERT INTO t VALUES (2)")
        try database.run("INSERT INTO t VALUES (2)")
      }
    }
    try database.transaction { try database.run("INSERT INTO t VALUES (3)") }
    #expect(try database.rows("SELECT a FROM t") { $0.integer(0) } == [3])
  }

  @Test func whatALaterProgramMadeIsLeftAlone() throws {
    let path = Self.fresh()
    defer { try? FileManager.default.removeItem(atPath: path) }
    let database = try Database(path: path)
    try database.run("PRAGMA user_version = 99")
    #expect { try Schema.prepare(database) } throws: { "\($0)".contains("a later one made it") }
    try Data("this is no database, but some text that is long enough".utf8).write(to: URL(fileURLWithPath: path + "2"))
    defer { try? FileManager.default.removeItem(atPath: path + "2") }
    #expect(throws: DatabaseError.self) { try Database(path: path + "2") }
  }
}
