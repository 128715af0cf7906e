import KapeControl
import NetworkExtension
import Synchronization

/// A host that writes down what a provider asks for. `never` makes it a platform that does not answer.
final class RecordingHost: TunnelHost {
  struct State {
    var applied: [TunnelSettings?] = []
    var reasserting: [Bool] = []
    var cancelled: [String] = []
    var sockets: [OutsideSocket] = []
  }
  private let state = Mutex(State())
  let tun: HostedTun?
  let never: Bool

  init(tun: HostedTun? = nil, never: Bool = false) {
    self.tun = tun
    self.never = never
  }

  var seen: State { state.withLock { $0 } }

  func apply(_ settings: TunnelSettings?) async throws {
    state.withLock { $0.applied.append(settings) }
    if never { await withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in } }
  }

  func makeSocket(_ wanted: OutsideSocket) async throws -> Int32 {
    state.withLock { $0.sockets.append(wanted) }
    return 7
  }

  func setReasserting(_ isReasserting: Bool) { state.withLock { $0.reasserting.append(isReasserting) } }
  func cancel(_ error: (any Error)?) { state.withLock { $0.cancelled.append("\(error.map { "\($0)" } ?? "-")") } }
}

/// Time that passes when it is told to.
final class ManualClock: Clock, Sendable {
  struct Instant: InstantProtocol {
    var offset: Duration
    func advanced(by duration: Duration) -> Instant { Instant(offset: offset + duration) }
    func duration(to other: Instant) -> Duration { other.offset - offset }
    static func < (a: Instant, b: Instant) -> Bool { a.offset < b.offset }
  }
  private struct Sleeper {
    let deadline: Instant
    let continuation: CheckedContinuation<Void, any Error>
  }
  private struct State {
    var now = Instant(offset: .zero)
    var next = 0
    var sleepers: [Int: Sleeper] = [:]
    var cancelled: Set<Int> = []
  }
  private let state = Mutex(State())

  var now: Instant { state.withLock { $0.now } }
  var minimumResolution: Duration { .nanoseconds(1) }
  /// How many tasks sleep.
  var sleepers: Int { state.withLock { $0.sleepers.count } }

  func sleep(until deadline: Instant, tolerance: Duration?) async throws {
    let id = state.withLock { state in
      state.next += 1
      return state.next
    }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let isOver: Result<Void, any Error>? = state.withLock { state in
          if state.cancelled.remove(id) != nil { return .failure(CancellationError()) }
          if deadline <= state.now { return .success(()) }
          state.sleepers[id] = Sleeper(deadline: deadline, continuation: continuation)
          return nil
        }
        if let isOver { continuation.resume(with: isOver) }
      }
    } onCancel: {
      let sleeper = state.withLock { state in
        let sleeper = state.sleepers.removeValue(forKey: id)
        if sleeper == nil { state.cancelled.insert(id) }
        return sleeper
      }
      sleeper?.continuation.resume(throwing: CancellationError())
    }
  }

  func advance(by duration: Duration) {
    let due = state.withLock { state in
      state.now = state.now.advanced(by: duration)
      let due = state.sleepers.filter { $0.value.deadline <= state.now }
      for key in due.keys { state.sleepers[key] = nil }
      return due.values.sorted { $0.deadline < $1.deadline }
    }
    for sleeper in due { sleeper.continuation.resume() }
  }

  /// Lets the tasks run until one sleeps.
  func hasSleeper() async {
    while sleepers == 0 { await Task.yield() }
  }
}
