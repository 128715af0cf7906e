import Glibc
import Testing

@testable import KapeControl

@Suite struct EventLogTests {
  /// What `body` makes a log write.
  private func lines(_ level: EventLog.Level, _ body: (EventLog) -> Void) throws -> [Substring] {
    let pipe = try Pipe()
    body(EventLog(level: level, interface: "wg0", descriptor: pipe.writing.raw))
    let reading = pipe.endingWriting()
    var text: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
      let size = read(reading.raw, &buffer, buffer.count)
      if size <= 0 { break }
      text += buffer[..<size]
    }
    return String(decoding: text, as: UTF8.self).split(separator: "\n")
  }

  @Test func a_line_is_keys_and_values() throws {
    let lines = try lines(.error) { $0.error("accept", ["error": "too many", "count": "3"]) }
    #expect(lines.count == 1)
    let fields = lines[0].split(separator: " ", maxSplits: 1)
    #expect(fields[0].hasPrefix("time=20") && fields[0].hasSuffix("Z"))
    #expect(fields[1] == #"level=error interface=wg0 event=accept error="too many" count=3"#)
  }

  @Test func a_value_cannot_begin_a_line_or_end_its_quotes() throws {
    let lines = try lines(.error) { $0.error("x", ["value": "a\"b\nlevel=error\u{1b}[31m"]) }
    #expect(lines.count == 1)
    #expect(lines[0].hasSuffix(#"value="a\"b\nlevel=error[31m""#))
  }

  @Test func levels_leave_out_what_is_below() throws {
    func both(_ log: EventLog) {
      log.error("bad")
      log.verbose("fine")
    }
    #expect(try lines(.silent, both).count == 0)
    #expect(try lines(.error, both).count == 1)
    #expect(try lines(.verbose, both).count == 2)
  }

  @Test func a_flood_of_one_kind_is_cut_and_others_are_not() throws {
    let lines = try lines(.error) { log in
      for _ in 0..<1000 { log.error("flood") }
      log.error("other")
    }
    #expect(lines.filter { $0.contains("event=flood") }.count <= 12)
    #expect(lines.contains { $0.contains("event=other") })
  }

  @Test func a_reader_that_does_not_read_holds_nothing_up() throws {
    let pipe = try Pipe()
    try pipe.writing.setNonBlocking()
    let full = [UInt8](repeating: 0, count: 4096)
    while write(pipe.writing.raw, full, full.count) > 0 {}
    EventLog(level: .error, interface: "wg0", descriptor: pipe.writing.raw).error("lost")
  }
}
