import Glibc
import Synchronization

/// The newest TAI64N stamp that an interface put into an initiation, kept for the next process of its name. Responders
/// refuse stamps that do not rise; with it they rise also when the clock was set back in between.
final class StampFile: Sendable {
  /// Outlives a restart of the machine, after which a clock without a battery is most likely to be behind.
  static var folder: String {
    let given = variable("KAPE_STATE_DIR") ?? ""
    return (given.isEmpty ? "/var/lib/kape" : given) + "/stamps"
  }

  /// Later than this (2 ^ 62 ns, in the year 2116) nothing is believed.
  private static let limit: UInt64 = 1 << 62

  let path: String
  /// What the file said at first, wall time in ns; 0: nothing.
  let kept: UInt64
  private let written: Mutex<UInt64>

  init(folder: String, interface: String) {
    path = folder + "/" + interface
    let text = ((try? Files.text(path)) ?? nil) ?? ""
    let stamp = UInt64(text.hasSuffix("\n") ? String(text.dropLast()) : text) ?? 0
    kept = stamp < Self.limit ? stamp : 0
    written = Mutex(kept)
  }

  /// By rename, so that the file is always whole; not when it says so already.
  func keep(_ stamp: UInt64) throws(SystemError) {
    guard stamp > written.withLock({ $0 }) else { return }
    if let slash = path.lastIndex(of: "/") { try Files.makeFolders(String(path[..<slash]), mode: 0o700) }
    // Longer than any interface's name.
    let scratch = path + ".kape-new-stamp"
    try Files.write(Array("\(stamp)\n".utf8), to: scratch)
    guard rename(scratch, path) == 0 else { throw SystemError(path) }
    written.withLock { $0 = stamp }
  }
}

/// Whether the wall clock can be right.
enum ClockCheck {
  /// How far the clock is behind what is known to be past, ns: the newest stamp that was sent, and the files that a
  /// tunnel is made of. 0: it may be right.
  static func behind(_ known: [UInt64], now: UInt64) -> UInt64 {
    let newest = known.max() ?? 0
    // A little ahead is ordinary: two initiations within one step of the stamps.
    return newest > now && newest - now > 1_000_000_000 ? newest - now : 0
  }

  /// When a file was last changed, wall time in ns; 0: not known.
  static func changed(_ path: String) -> UInt64 {
    var information = stat()
    guard stat(path, &information) == 0, information.st_mtim.tv_sec > 0 else { return 0 }
    return UInt64(information.st_mtim.tv_sec).multipliedReportingOverflow(by: 1_000_000_000).partialValue
  }

  /// For a line of the log.
  static func text(_ behind: UInt64) -> String {
    "the clock is " + StatusText.duration(behind / 1_000_000_000) + " behind, and the other side refuses old handshakes"
  }
}
