internal import CLinux
import Glibc
import Synchronization

/// Waits for many descriptors on one thread of its own and resumes the tasks that asked. The control plane's only
/// waiting place: nothing of it blocks a thread of the cooperative pool.
package final class Reactor: Sendable {
  package enum Interest: Sendable { case reading, writing }

  private let core: Core

  package init() throws(SystemError) {
    core = try Core()
    try core.start()
  }

  deinit { core.stop() }

  /// Returns when `descriptor` can be read from or written to, or has an error or a hang-up to tell. One task waits for
  /// a descriptor at a time. Throws `CancellationError`, or `SystemError` with ETIMEDOUT after `deadline`. The
  /// descriptor stays open meanwhile.
  package func wait(for descriptor: Int32, _ interest: Interest, within deadline: Duration? = nil) async throws {
    let core = self.core
    let id = core.newIdentifier()
    defer { core.forget(id) }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        core.add(
          Waiter(
            id: id, descriptor: descriptor, expiry: deadline.map { monotonicNow() + nanoseconds($0) },
            continuation: continuation), interest)
      }
    } onCancel: {
      core.cancel(id)
    }
  }

  package func readable(_ descriptor: Int32, within deadline: Duration? = nil) async throws {
    try await wait(for: descriptor, .reading, within: deadline)
  }

  package func writable(_ descriptor: Int32, within deadline: Duration? = nil) async throws {
    try await wait(for: descriptor, .writing, within: deadline)
  }
}

private struct Waiter: Sendable {
  let id: UInt32
  let descriptor: Int32
  let expiry: UInt64?
  let continuation: CheckedContinuation<Void, any Error>
}

/// What the thread and the reactor share; the thread keeps it alive until it has ended.
private final class Core: Sendable {
  private struct State {
    var waiters: [UInt32: Waiter] = [:]
    /// Cancelled before they were added.
    var cancelled: Set<UInt32> = []
    var nextIdentifier: UInt32 = 1
    var stopping = false
  }

  private let epoll: Descriptor
  private let wake: Descriptor
  private let state = Mutex(State())

  init() throws(SystemError) {
    let epollDescriptor = epoll_create1(Int32(EPOLL_CLOEXEC))
    guard epollDescriptor >= 0 else { throw SystemError("epoll_create1") }
    epoll = Descriptor(owning: epollDescriptor)
    let wakeDescriptor = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
    guard wakeDescriptor >= 0 else { throw SystemError("eventfd") }
    wake = Descriptor(owning: wakeDescriptor)
    var event = epoll_event()
    event.events = UInt32(CLINUX_EPOLLIN)
    event.data.u64 = 0
    guard epoll_ctl(epollDescriptor, EPOLL_CTL_ADD, wakeDescriptor, &event) == 0 else { throw SystemError("epoll_ctl") }
  }

  func start() throws(SystemError) {
    try startThread(stackSize: 256 * 1024) { self.run() }
  }

  func stop() {
    state.withLock { $0.stopping = true }
    signal()
  }

  private func signal() {
    var one: UInt64 = 1
    _ = write(wake.raw, &one, 8)
  }

  func newIdentifier() -> UInt32 {
    state.withLock { state in
      // 0 is the wake descriptor's.
      repeat {
        state.nextIdentifier = max(1, state.nextIdentifier &+ 1)
      } while state.waiters[state.nextIdentifier] != nil
      return state.nextIdentifier
    }
  }

  func forget(_ id: UInt32) {
    state.withLock { _ = $0.cancelled.remove(id) }
  }

  func add(_ waiter: Waiter, _ interest: Reactor.Interest) {
    let failure: (any Error)? = state.withLock { state in
      if state.stopping || state.cancelled.remove(waiter.id) != nil { return CancellationError() }
      var event = epoll_event()
      event.events = UInt32(
        (interest == .reading ? CLINUX_EPOLLIN : CLINUX_EPOLLOUT) | CLINUX_EPOLLONESHOT)
      event.data.u64 = UInt64(waiter.id)
      if epoll_ctl(epoll.raw, EPOLL_CTL_MOD, waiter.descriptor, &event) != 0 {
        guard errno == ENOENT, epoll_ctl(epoll.raw, EPOLL_CTL_ADD, waiter.descriptor, &event) == 0 else {
          return SystemError("epoll_ctl")
        }
      }
      state.waiters[waiter.id] = waiter
      return nil
    }
    if let failure {
      waiter.continuation.resume(throwing: failure)
    } else if waiter.expiry != nil {
      signal()
    }
  }

  func cancel(_ id: UInt32) {
    let waiter = state.withLock { state in
      let waiter = state.waiters.removeValue(forKey: id)
      if waiter == nil { state.cancelled.insert(id) }
      return waiter
    }
    waiter?.continuation.resume(throwing: CancellationError())
  }

  private func run() {
    let capacity = 32
    withUnsafeTemporaryAllocation(of: epoll_event.self, capacity: capacity) { events in
      while true {
        let (stopping, expiry) = state.withLock { ($0.stopping, $0.waiters.values.compactMap(\.expiry).min()) }
        if stopping { break }
        let count = epoll_wait(epoll.raw, events.baseAddress, Int32(capacity), milliseconds(until: expiry))
        for event in events.prefix(max(0, Int(count))) { handle(event) }
        expire()
      }
    }
    let rest = state.withLock { state in
      defer { state.waiters = [:] }
      return Array(state.waiters.values)
    }
    for waiter in rest { waiter.continuation.resume(throwing: CancellationError()) }
  }

  private func handle(_ event: epoll_event) {
    guard let id = UInt32(exactly: event.data.u64) else { return }
    if id == 0 {
      var count: UInt64 = 0
      _ = read(wake.raw, &count, 8)
      return
    }
    // One that was cancelled or timed out meanwhile is not there any more.
    state.withLock { $0.waiters.removeValue(forKey: id) }?.continuation.resume()
  }

  private func expire() {
    let now = monotonicNow()
    let late = state.withLock { state in
      let late = state.waiters.values.filter { $0.expiry.map { $0 <= now } ?? false }
      for waiter in late { state.waiters[waiter.id] = nil }
      return late
    }
    for waiter in late { waiter.continuation.resume(throwing: SystemError("wait", code: ETIMEDOUT)) }
  }

  private func milliseconds(until expiry: UInt64?) -> Int32 {
    guard let expiry else { return -1 }
    let now = monotonicNow()
    guard expiry > now else { return 0 }
    return Int32(min(UInt64(Int32.max), (expiry - now + 999_999) / 1_000_000))
  }
}

/// CLOCK_MONOTONIC in nanoseconds.
func monotonicNow() -> UInt64 {
  var time = timespec()
  clock_gettime(CLOCK_MONOTONIC, &time)
  return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

private func nanoseconds(_ duration: Duration) -> UInt64 {
  let (seconds, attoseconds) = duration.components
  return UInt64(max(0, seconds)) * 1_000_000_000 + UInt64(max(0, attoseconds) / 1_000_000_000)
}
