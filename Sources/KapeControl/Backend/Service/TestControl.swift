import Glibc
import KapeControl
import Synchronization

/// A private socket on which a test moves the clock of a running backend: "advance SECONDS", answered when what is due by
/// then is done. It is there with `--test-clock` only.
final class TestControl: Sendable {
  private let reactor: Reactor
  private let serving = Mutex<Task<Void, Never>?>(nil)
  private let path: String

  init(_ path: String, _ clock: AdjustableBackendClock, _ backend: Backend) throws {
    self.path = path
    reactor = try Reactor()
    let listening = try UnixSocket.listen(path)
    let reactor = self.reactor
    let socket = Shared(listening)
    serving.withLock {
      $0 = Task {
        while !Task.isCancelled {
          guard (try? await reactor.readable(socket.descriptor.raw)) != nil else { return }
          guard let client = UnixSocket.accept(socket.descriptor) else { continue }
          await Self.serve(client, reactor, clock, backend)
        }
      }
    }
  }

  /// A descriptor that a task keeps.
  private final class Shared: Sendable {
    let descriptor: Descriptor
    init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }
  }

  private static func serve(
    _ client: consuming Descriptor, _ reactor: Reactor, _ clock: AdjustableBackendClock, _ backend: Backend
  ) async {
    let client = Shared(client)
    let raw = client.descriptor.raw
    var line: [UInt8] = []
    while !line.contains(0x0A), line.count < 64 {
      guard (try? await reactor.readable(raw, within: .seconds(5))) != nil else { return }
      var part = [UInt8](repeating: 0, count: 64)
      let size = recv(raw, &part, part.count, 0)
      guard size > 0 else { return }
      line += part[..<size]
    }
    let words = String(decoding: line, as: UTF8.self).split { $0 == " " || $0 == "\n" }
    var answer = "error: advance SECONDS\n"
    if words.count == 2, words[0] == "advance", let seconds = Int64(words[1]), (0...1_000_000_000).contains(seconds) {
      clock.advance(seconds: seconds)
      await backend.sweep()
      answer = "ok \(clock.seconds)\n"
    }
    _ = answer.withUTF8 { send(raw, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
  }

  func stop() {
    serving.withLock { $0?.cancel() }
    unlink(path)
  }
}
