import Foundation
import KapePlatform
import KapeTestSupport
import Synchronization

/// Virtual time, and the one thread that everything in it runs on: jobs of tasks in their order (or in one of its own
/// choice, by seed), then the next timer. Nothing waits, and the same seed is the same run.
final class SimulatedTime: TaskExecutor, SessionClock {
  private struct Timer {
    let due: Duration
    let order: UInt64
    let action: @Sendable () -> Void
  }

  private struct State {
    var now = Duration.zero
    var jobs: [UnownedJob] = []
    var nextJob = 0
    var timers: [UInt64: Timer] = [:]
    /// Those that are due first, first; some may be cancelled.
    var heap = Heap()
    var order: UInt64 = 0
    /// Shuffles jobs; nil: in their order.
    var random: SeededGenerator?
    var wallOffset = Duration.zero
    var jobCount = 0
  }
  private let state = Mutex(State())

  init(shuffledBy seed: UInt64? = nil) {
    if let seed { state.withLock { $0.random = SeededGenerator(seed: seed) } }
  }

  // MARK: TaskExecutor

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    state.withLock { $0.jobs.append(job) }
  }

  // MARK: SessionClock

  var now: Duration { state.withLock { $0.now } }
  var wallTime: Date {
    let (now, offset) = state.withLock { ($0.now, $0.wallOffset) }
    return Date(timeIntervalSince1970: 1_700_000_000 + (now + offset) / .seconds(1))
  }

  /// Sets the clock on the wall.
  func moveWall(by offset: Duration) { state.withLock { $0.wallOffset += offset } }

  @discardableResult
  func schedule(after delay: Duration, _ action: @escaping @Sendable () -> Void) -> SessionTimer {
    let order = state.withLock { state in
      state.order += 1
      let timer = Timer(due: state.now + max(.zero, delay), order: state.order, action: action)
      state.timers[timer.order] = timer
      state.heap.insert(Heap.Entry(due: timer.due, order: timer.order))
      return timer.order
    }
    return SessionTimer { [weak self] in self?.state.withLock { _ = $0.timers.removeValue(forKey: order) } }
  }

  func sleep(for delay: Duration) async throws {
    let sleeper = Sleeper()
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        sleeper.start(continuation)
        schedule(after: delay) { sleeper.finish(.success(())) }
      }
    } onCancel: {
      sleeper.finish(.failure(CancellationError()))
    }
  }

  // MARK: Running

  var timerCount: Int { state.withLock { $0.timers.count } }
  var jobCount: Int { state.withLock { $0.jobCount } }

  private func nextJob() -> UnownedJob? {
    state.withLock { state in
      guard state.nextJob < state.jobs.count else {
        state.jobs.removeAll(keepingCapacity: true)
        state.nextJob = 0
        return nil
      }
      if var random = state.random {
        state.jobs.swapAt(state.nextJob, Int.random(in: state.nextJob..<state.jobs.count, using: &random))
        state.random = random
      }
      state.jobCount += 1
      state.nextJob += 1
      return state.jobs[state.nextJob - 1]
    }
  }

  private func nextTimer(by limit: Duration) -> (@Sendable () -> Void)? {
    state.withLock { state in
      while let first = state.heap.first {
        guard let timer = state.timers[first.order] else {
          state.heap.removeFirst()
          continue
        }
        guard first.due <= limit else { return nil }
        state.heap.removeFirst()
        state.timers[first.order] = nil
        state.now = max(state.now, first.due)
        return timer.action
      }
      return nil
    }
  }

  /// Runs until there is nothing to do before that time, which it is then.
  func run(until limit: Duration) {
    repeat {
      while let job = nextJob() { job.runSynchronously(on: asUnownedTaskExecutor()) }
      guard let action = nextTimer(by: limit) else { break }
      action()
    } while true
    if limit < .seconds(1_000_000_000) { state.withLock { $0.now = max($0.now, limit) } }
  }

  func run(for duration: Duration = .zero) { run(until: now + duration) }

  /// Runs until there is nothing left to do, ever.
  func runToEnd() { run(until: .seconds(1_000_000_000)) }

  /// Runs `body` in a task until it is done; nil when it is not within `limit`.
  @discardableResult
  func perform<Success: Sendable>(
    within limit: Duration = .seconds(100_000), _ body: @escaping @Sendable () async throws -> Success
  ) -> Result<Success, any Error>? {
    let result = Box<Result<Success, any Error>>()
    spawn {
      do { result.value = .success(try await body()) } catch { result.value = .failure(error) }
    }
    let end = now + limit
    while result.value == nil {
      while result.value == nil, let job = nextJob() { job.runSynchronously(on: asUnownedTaskExecutor()) }
      if result.value != nil { break }
      guard let action = nextTimer(by: end) else {
        run(until: end)
        return nil
      }
      action()
    }
    // What follows from it at once.
    run()
    return result.value
  }

  @discardableResult
  func spawn<Success: Sendable>(_ body: @escaping @Sendable () async -> Success) -> Task<Success, Never> {
    Task(executorPreference: self, operation: body)
  }
}

/// A value that tasks of one simulation share.
final class Box<Value: Sendable>: Sendable {
  private let state: Mutex<Value?>
  init(_ value: Value? = nil) { state = Mutex(value) }
  var value: Value? {
    get { state.withLock { $0 } }
    set { state.withLock { $0 = newValue } }
  }
}

private final class Sleeper: Sendable {
  private enum State {
    case early(Result<Void, any Error>?)
    case waiting(CheckedContinuation<Void, any Error>)
    case over
  }
  private let state = Mutex(State.early(nil))

  func start(_ continuation: CheckedContinuation<Void, any Error>) {
    let result: Result<Void, any Error>? = state.withLock { state in
      guard case .early(let result) = state else { return nil }
      state = result == nil ? .waiting(continuation) : .over
      return result
    }
    if let result { continuation.resume(with: result) }
  }

  func finish(_ result: Result<Void, any Error>) {
    let continuation: CheckedContinuation<Void, any Error>? = state.withLock { state in
      switch state {
      case .early:
        state = .early(result)
        return nil
      case .waiting(let continuation):
        state = .over
        return continuation
      case .over: return nil
      }
    }
    continuation?.resume(with: result)
  }
}

/// A binary heap, the smallest first.
struct Heap {
  struct Entry: Comparable {
    let due: Duration
    let order: UInt64
    static func < (one: Entry, other: Entry) -> Bool {
      one.due != other.due ? one.due < other.due : one.order < other.order
    }
  }
  private var entries: [Entry] = []

  var first: Entry? { entries.first }

  mutating func insert(_ entry: Entry) {
    entries.append(entry)
    var index = entries.count - 1
    while index > 0, entries[index] < entries[(index - 1) / 2] {
      entries.swapAt(index, (index - 1) / 2)
      index = (index - 1) / 2
    }
  }

  mutating func removeFirst() {
    guard let last = entries.popLast(), !entries.isEmpty else { return }
    entries[0] = last
    var index = 0
    while true {
      var least = index
      for child in [2 * index + 1, 2 * index + 2] where child < entries.count && entries[child] < entries[least] {
        least = child
      }
      guard least != index else { return }
      entries.swapAt(index, least)
      index = least
    }
  }
}
