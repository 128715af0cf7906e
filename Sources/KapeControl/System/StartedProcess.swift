internal import CLinux
import Glibc

/// A process by its number and the moment of its start, which together are no other's while the machine runs.
package struct StartedProcess: Equatable, Sendable {
  package let identifier: Int32
  /// Clock ticks since the machine was started, as proc(5) has them.
  package let started: UInt64

  package init(_ identifier: Int32, started: UInt64) {
    self.identifier = identifier
    self.started = started
  }

  /// nil: there is none of that number.
  package init?(_ identifier: Int32) {
    guard let started = Self.start(of: identifier) else { return nil }
    self.init(identifier, started: started)
  }

  /// One that has ended and was not waited for yet counts as gone.
  package var isRunning: Bool {
    guard let (state, start) = Self.stat(of: identifier) else { return false }
    return start == started && state != "Z" && state != "X"
  }

  /// Ends it with its process group: by SIGTERM, and by SIGKILL what is there a second later.
  package func end() async throws(SystemError) {
    guard isRunning else { return }
    signal(SIGTERM)
    for _ in 0..<20 where isRunning { await Self.pause() }
    for _ in 0..<40 where isRunning {
      signal(SIGKILL)
      await Self.pause()
    }
    if isRunning { throw SystemError("end process \(identifier)", code: ETIMEDOUT) }
  }

  private static func pause() async { _ = try? await Task.sleep(for: .milliseconds(50)) }

  private func signal(_ number: Int32) {
    // The group too, where it leads one; it has no other number then.
    if getpgid(identifier) == identifier { kill(-identifier, number) } else { kill(identifier, number) }
  }

  private static func start(of identifier: Int32) -> UInt64? { stat(of: identifier)?.1 }

  /// State and start; the name in between may hold anything.
  private static func stat(of identifier: Int32) -> (String, UInt64)? {
    guard let text = try? Files.text("/proc/\(identifier)/stat"), let end = text.lastIndex(of: ")") else { return nil }
    let fields = text[text.index(after: end)...].split(separator: " ")
    guard fields.count > 19, let start = UInt64(fields[19]) else { return nil }
    return (String(fields[0]), start)
  }
}
