import KapePlatform
import Synchronization

/// Answers in turn, one at a time; the last for ever.
final class ScriptedGenerator: VpnConfigurationGenerator {
  enum Answer: Sendable {
    case give(any VpnConfiguration)
    case nothing
    case fail(any Error)
    case slow(Duration, any VpnConfiguration)
    /// Until it is released, whatever anyone says.
    case never
  }

  private struct State {
    var answers: [Answer]
    var calls: [Duration] = []
    var hung: [CheckedContinuation<Void, Never>] = []
    var running = 0
  }
  private let state: Mutex<State>
  private let time: SimulatedTime
  private let journal: Journal

  init(_ answers: [Answer], time: SimulatedTime, journal: Journal) {
    state = Mutex(State(answers: answers))
    self.time = time
    self.journal = journal
  }

  /// When it was called.
  var calls: [Duration] { state.withLock { $0.calls } }

  func nextConfiguration() async throws -> (any VpnConfiguration)? {
    let answer = state.withLock { state in
      state.running += 1
      if state.running > 1 { journal.add("VIOLATION generator asked twice at once") }
      state.calls.append(time.now)
      return state.answers.count > 1 ? state.answers.removeFirst() : state.answers.first
    }
    defer { state.withLock { $0.running -= 1 } }
    journal.add("pull")
    switch answer {
    case .give(let configuration): return configuration
    case .nothing, nil: return nil
    case .fail(let error): throw error
    case .slow(let delay, let configuration):
      try await time.sleep(for: delay)
      return configuration
    case .never:
      await withCheckedContinuation { continuation in state.withLock { $0.hung.append(continuation) } }
      return nil
    }
  }

  func release() {
    let hung = state.withLock { state in
      defer { state.hung = [] }
      return state.hung
    }
    for continuation in hung { continuation.resume() }
  }
}

/// Gives batches in turn; the last for ever.
final class BatchGenerator: VpnConfigurationGenerator {
  private let batches: Mutex<[[any VpnConfiguration]]>
  private let journal: Journal

  init(_ batches: [[any VpnConfiguration]], journal: Journal) {
    self.batches = Mutex(batches)
    self.journal = journal
  }

  func generateConfigurations() async -> [any VpnConfiguration] {
    journal.add("pull")
    return batches.withLock { $0.count > 1 ? $0.removeFirst() : $0.first ?? [] }
  }
}
