import Foundation
import KapeControl
internal import KapeProtocols

/// Lines about what the SDK does, for those who look for a fault: on standard error, one an event, public addresses and
/// tokens left out. `KAPE_LOG` says from which level on: `trace`, `debug`, `info`, `warning` (without it), `error`,
/// `none`. Lines to the journal begin with their priority, as sd-daemon(3) has it.
public struct KapeLogger: PacketTunnelLogger {
  public enum Level: Int, Comparable, Sendable, CaseIterable {
    case trace, debug, info, warning, error

    public static func < (one: Level, other: Level) -> Bool { one.rawValue < other.rawValue }

    var name: String { "\(self)" }

    /// That of syslog(3).
    var priority: Int {
      switch self {
      case .trace, .debug: 7
      case .info: 6
      case .warning: 4
      case .error: 3
      }
    }
  }

  public let subsystem: String
  public let category: String
  private let threshold: Int
  private let sink: @Sendable (Level, String) -> Void

  public init(subsystem: String, category: String) {
    self.init(subsystem: subsystem, category: category, threshold: Self.threshold(variable("KAPE_LOG")), sink: nil)
  }

  /// Lines to `sink`, each with its level, redacted.
  package init(
    subsystem: String, category: String, from level: Level = .trace, sink: @escaping @Sendable (Level, String) -> Void
  ) {
    self.init(subsystem: subsystem, category: category, threshold: level.rawValue, sink: sink)
  }

  private init(
    subsystem: String, category: String, threshold: Int, sink: (@Sendable (Level, String) -> Void)?
  ) {
    self.subsystem = subsystem
    self.category = category
    self.threshold = threshold
    self.sink = sink ?? { level, message in Self.write(level, subsystem, category, message) }
  }

  public func trace(_ message: @autoclosure () -> String) { log(.trace, message) }
  public func debug(_ message: @autoclosure () -> String) { log(.debug, message) }
  public func info(_ message: @autoclosure () -> String) { log(.info, message) }
  public func warning(_ message: @autoclosure () -> String) { log(.warning, message) }
  public func error(_ message: @autoclosure () -> String) { log(.error, message) }

  private func log(_ level: Level, _ message: () -> String) {
    guard level.rawValue >= threshold else { return }
    sink(level, Redaction.hidingAll(in: message()))
  }

  /// The least level that is written.
  static func threshold(_ wish: String?) -> Int {
    guard let wish, wish != "none" else { return wish == nil ? Level.warning.rawValue : Level.error.rawValue + 1 }
    return (Level.allCases.first { $0.name == wish } ?? .warning).rawValue
  }

  private static func write(_ level: Level, _ subsystem: String, _ category: String, _ message: String) {
    let time = Timestamp.text(Timestamp.now())
    // One line whatever is in it.
    let text = message.unicodeScalars.map { $0.value < 0x20 || $0.value == 0x7F ? " " : String($0) }.joined()
    let priority = isJournal ? "<\(level.priority)>" : ""
    let line =
      "\(priority)time=\(time) level=\(level.name) subsystem=\(subsystem) category=\(category) message=\(text)\n"
    _ = try? FileHandle.standardError.write(contentsOf: Data(line.utf8))
  }

  /// Whether standard error is the journal: systemd.exec(5) on JOURNAL_STREAM.
  private static var isJournal: Bool {
    guard let stream = variable("JOURNAL_STREAM") else { return false }
    var information = stat()
    return fstat(STDERR_FILENO, &information) == 0 && stream == "\(information.st_dev):\(information.st_ino)"
  }
}
