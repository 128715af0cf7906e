import Glibc
import Synchronization

/// What a provider writes on its standard streams: the last lines, for whoever looks for the reason of its end.
final class ProviderOutput: Sendable {
  private static let mostLines = 200
  private static let longestLine = 1024

  private struct State {
    var lines: [String] = []
    var pending: [UInt8] = []
  }
  private let state = Mutex(State())
  private let pipe: Descriptor
  private let reactor: Reactor

  init(_ pipe: consuming Descriptor, _ reactor: Reactor) {
    self.pipe = pipe
    self.reactor = reactor
  }

  var lines: [String] {
    state.withLock { state in
      state.lines + (state.pending.isEmpty ? [] : [String(decoding: state.pending, as: UTF8.self)])
    }
  }

  /// What it said of its end, as far as that can be told from what it said.
  var lastWords: String? {
    let lines = lines.filter { $0.contains { !$0.isWhitespace } }
    return lines.last { $0.contains("Fatal error") } ?? lines.last
  }

  /// Reads until every writer has ended, or the task is cancelled.
  func run() async {
    while (try? await reactor.readable(pipe.raw)) != nil {
      var part = [UInt8](repeating: 0, count: 4096)
      guard let size = retrying({ read(pipe.raw, &part, part.count) }) else {
        if errno == EAGAIN { continue }
        return
      }
      if size == 0 { return }
      take(part[..<size])
    }
  }

  private func take(_ bytes: ArraySlice<UInt8>) {
    state.withLock { state in
      for byte in bytes {
        let isEnd = byte == UInt8(ascii: "\n")
        if !isEnd { state.pending.append(byte) }
        guard isEnd || state.pending.count >= Self.longestLine else { continue }
        state.lines.append(String(decoding: state.pending, as: UTF8.self))
        state.pending = []
        if state.lines.count > Self.mostLines { state.lines.removeFirst() }
      }
    }
  }
}
