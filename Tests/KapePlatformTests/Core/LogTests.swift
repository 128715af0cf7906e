import Foundation
import KapePlatform
import KapeProtocols
import KapeTestSupport
import Synchronization
import Testing

@Suite("§3.4, §7.5: what gets into a log") struct LogTests {
  @Test(
    "public addresses and tokens do not",
    arguments: [
      ("peer 203.0.113.5:51820 answers", "peer <redacted>:51820 answers"),
      ("from 198.51.100.7.", "from <redacted>."),
      ("[2001:db8::1]:443", "[<redacted>]:443"),
      ("::ffff:203.0.113.5", "<redacted>"),
      (
        "10.1.2.3, 127.0.0.1:80, 100.64.0.1, 169.254.1.1, 172.16.9.9 and 192.168.1.1 stay",
        "10.1.2.3, 127.0.0.1:80, 100.64.0.1, 169.254.1.1, 172.16.9.9 and 192.168.1.1 stay"
      ),
      ("::, ::1, fc00::1, fd12::9, fe80::1%eth0", "::, ::1, fc00::1, fd12::9, fe80::1%eth0"),
      ("172.32.0.1 100.128.0.1 11.0.0.1 0.1.2.3", "<redacted> <redacted> <redacted> 0.1.2.3"),
      ("Bearer eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJ4In0.c2ln!", "Bearer <token>!"),
      ("version 1.2.3, file a.b.c, 12:30:01, /etc/x.conf", "version 1.2.3, file a.b.c, 12:30:01, /etc/x.conf"),
      ("", ""), ("nothing", "nothing"), ("…:…", "…:…"),
    ])
  func redaction(_ text: String, _ shown: String) {
    #expect(Redaction.hidingAll(in: text) == shown)
  }

  @Test("a message below the level is not even made")
  func levels() {
    let lines = Mutex<[String]>([])
    let logger = KapeLogger(subsystem: "s", category: "c", from: .warning) { level, message in
      lines.withLock { $0.append("\(level): \(message)") }
    }
    func never() -> String {
      Issue.record("made")
      return ""
    }
    logger.trace(never())
    logger.debug(never())
    logger.info(never())
    logger.warning("one of \(2)")
    logger.error("203.0.113.1")
    #expect(lines.withLock { $0 } == ["warning: one of 2", "error: <redacted>"])
  }

  @Test("§16: a line an event on standard error, with its priority where that is the journal")
  func lines() throws {
    let folder = try ScratchFolder()
    let script = """
      exec 2>"$0"
      KAPE_LOG=trace "$1" log 'one "two" 203.0.113.9'
      JOURNAL_STREAM=$(stat -c %d:%i "$0") KAPE_LOG=trace "$1" log three
      JOURNAL_STREAM=1:1 "$1" log four
      KAPE_LOG=none "$1" log five
      """
    let file = folder.path + "/log"
    _ = try Execution.run(["sh", "-c", script, file, probe])
    let written = try String(contentsOfFile: file, encoding: .utf8).split(separator: "\n").map {
      String($0).replacing(#/time=\S+ /#, with: "")
    }
    let levels = ["trace", "debug", "info", "warning", "error"]
    func line(_ level: String, _ text: String) -> String {
      "level=\(level) subsystem=probe category=log message=\(text)"
    }
    #expect(Array(written.prefix(5)) == levels.map { line($0, "one \"two\" <redacted>") })
    let priorities = zip(["<7>", "<7>", "<6>", "<4>", "<3>"], levels)
    #expect(Array(written.dropFirst(5).prefix(5)) == priorities.map { $0 + line($1, "three") })
    // Without a wish from warnings on.
    #expect(Array(written.dropFirst(10)) == [line("warning", "four"), line("error", "four")])
  }
}
