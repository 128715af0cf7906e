import Glibc
import Synchronization

/// Lines for people and machines on standard error: one an event, `key=value`. Of one kind of event at most ten at once
/// and then one a second are written; the next line tells how many were left out. Keys, addresses of a person's traffic
/// and other secrets are not to be handed to it.
package final class EventLog: Sendable {
  package enum Level: Int, Sendable { case silent, error, verbose }

  package let level: Level
  private let descriptor: Int32
  private let subject: String
  private let buckets = Mutex<[String: Bucket]>([:])

  private struct Bucket {
    var tokens = 10.0
    var at: UInt64
    var left: UInt64 = 0
  }

  package convenience init(level: Level, interface: String, descriptor: Int32 = STDERR_FILENO) {
    self.init(level: level, of: "interface", interface, descriptor: descriptor)
  }

  /// Each line says `kind=name`, for what it is about.
  package init(level: Level, of kind: StaticString, _ name: String, descriptor: Int32 = STDERR_FILENO) {
    self.level = level
    subject = "\(kind)=\(name)"
    self.descriptor = descriptor
  }

  package func error(_ event: StaticString, _ fields: KeyValuePairs<StaticString, String> = [:]) {
    if level != .silent { write("error", event, fields) }
  }

  package func verbose(_ event: StaticString, _ fields: @autoclosure () -> KeyValuePairs<StaticString, String> = [:]) {
    if level == .verbose { write("info", event, fields()) }
  }

  private func write(_ level: String, _ event: StaticString, _ fields: KeyValuePairs<StaticString, String>) {
    guard let suppressed = admit(event.description) else { return }
    var line = "time=\(timestamp()) level=\(level) \(subject) event=\(event)"
    for (key, value) in fields { line += " \(key)=\(quoted(value))" }
    if suppressed > 0 { line += " suppressed=\(suppressed)" }
    line += "\n"
    // A reader that does not read must not hold us up: the line is lost then.
    var room = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
    guard poll(&room, 1, 0) == 1, room.revents & Int16(POLLOUT) != 0 else { return }
    line.withUTF8 { bytes in _ = Glibc.write(descriptor, bytes.baseAddress, bytes.count) }
  }

  /// How many of its kind were left out since the last; nil when this one is to be left out too.
  private func admit(_ event: String) -> UInt64? {
    let now = monotonicNow()
    return buckets.withLock { buckets in
      var bucket = buckets[event] ?? Bucket(at: now)
      bucket.tokens = min(10, bucket.tokens + Double(now - bucket.at) / 1e9)
      bucket.at = now
      defer { buckets[event] = bucket }
      guard bucket.tokens >= 1 else {
        bucket.left += 1
        return nil
      }
      bucket.tokens -= 1
      defer { bucket.left = 0 }
      return bucket.left
    }
  }

  private func quoted(_ value: String) -> String {
    let plain = value.utf8.allSatisfy { $0 > 0x20 && $0 != 0x22 && $0 != 0x3D && $0 != 0x5C && $0 < 0x7F }
    if plain && !value.isEmpty { return value }
    var text = "\""
    for scalar in value.unicodeScalars {
      switch scalar {
      case "\"": text += "\\\""
      case "\\": text += "\\\\"
      case "\n": text += "\\n"
      default: if scalar.value >= 0x20 && scalar.value != 0x7F { text.unicodeScalars.append(scalar) }
      }
    }
    return text + "\""
  }
}

/// RFC 3339, UTC, with milliseconds.
private func timestamp() -> String {
  var now = timespec()
  clock_gettime(CLOCK_REALTIME, &now)
  var parts = tm()
  gmtime_r(&now.tv_sec, &parts)
  func padded(_ value: Int, _ width: Int) -> String {
    let digits = String(value)
    return String(repeating: "0", count: max(0, width - digits.count)) + digits
  }
  return padded(Int(parts.tm_year) + 1900, 4) + "-" + padded(Int(parts.tm_mon) + 1, 2) + "-"
    + padded(Int(parts.tm_mday), 2) + "T" + padded(Int(parts.tm_hour), 2) + ":" + padded(Int(parts.tm_min), 2) + ":"
    + padded(Int(parts.tm_sec), 2) + "." + padded(now.tv_nsec / 1_000_000, 3) + "Z"
}
