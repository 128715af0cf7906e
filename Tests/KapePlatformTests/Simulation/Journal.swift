import KapePlatform
import Synchronization

/// What happened in a simulation, in order.
final class Journal: Sendable {
  private let lines = Mutex<[String]>([])

  func add(_ line: String) { lines.withLock { $0.append(line) } }
  var all: [String] { lines.withLock { $0 } }

  /// What was added since the last call.
  func take() -> [String] {
    lines.withLock { lines in
      defer { lines = [] }
      return lines
    }
  }

  func count(_ line: String) -> Int { all.count { $0 == line } }
}

/// Writes each line of the log into a journal, with its level.
struct JournalLogger: PacketTunnelLogger {
  let journal: Journal
  func trace(_ message: @autoclosure () -> String) { journal.add("trace \(message())") }
  func debug(_ message: @autoclosure () -> String) { journal.add("debug \(message())") }
  func info(_ message: @autoclosure () -> String) { journal.add("info \(message())") }
  func warning(_ message: @autoclosure () -> String) { journal.add("warning \(message())") }
  func error(_ message: @autoclosure () -> String) { journal.add("error \(message())") }
}

struct SilentLogger: PacketTunnelLogger {
  func trace(_ message: @autoclosure () -> String) {}
  func debug(_ message: @autoclosure () -> String) {}
  func info(_ message: @autoclosure () -> String) {}
  func warning(_ message: @autoclosure () -> String) {}
  func error(_ message: @autoclosure () -> String) {}
}

extension Journal {
  func clear() { _ = take() }
}
