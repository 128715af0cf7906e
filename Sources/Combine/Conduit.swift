/// The way from a broadcast to one subscriber.
///
/// Unchecked: what changes is behind the lock, which is taken within the broadcast's and never the other way round.
final class Conduit<Output, Failure: Error>: Subscription, @unchecked Sendable {
  private enum Event {
    case value(Output)
    case completion(Subscribers.Completion<Failure>)
  }

  private struct State {
    /// Nil once it was cancelled or has ended.
    var downstream: (any Subscriber<Output, Failure>)?
    var broadcast: Broadcast<Output, Failure>?
    /// What may still be put into the queue.
    var demand = Subscribers.Demand.none
    var queue = Queue<Event>()
    /// The newest value that was put into the queue.
    var version: UInt64 = 0
    /// Who is within the subscriber.
    var thread: UInt?
  }

  private let state: Locked<State>

  init(to downstream: any Subscriber<Output, Failure>, from broadcast: Broadcast<Output, Failure>) {
    state = Locked(State(downstream: downstream, broadcast: broadcast))
  }

  /// Whether the value went into the queue: not one that it has had, and none when nothing was asked for.
  @discardableResult func put(_ value: Output, version: UInt64) -> Bool {
    state.with { state in
      guard state.downstream != nil, version > state.version, state.demand > .none else { return false }
      state.demand -= 1
      state.version = version
      state.queue.append(.value(value))
      return true
    }
  }

  func put(_ completion: Subscribers.Completion<Failure>) {
    state.with { $0.queue.append(.completion(completion)) }
  }

  func request(_ demand: Subscribers.Demand) {
    // Claimed first, so that the value held is there when the call returns, unless another thread is at it.
    let mine = claim()
    add(demand)
    deliver(mine ?? claim())
  }

  func cancel() {
    let old = end()
    old?.broadcast?.detach(self)
  }

  /// Gives the subscriber its subscription, and what came meanwhile.
  func open() {
    let mine = claim()
    state.with { $0.downstream }?.receive(subscription: self)
    deliver(mine)
  }

  /// Gives the subscriber what is in the queue, unless another thread is at it, which then does so.
  func deliver() {
    deliver(claim())
  }

  private enum Claim {
    /// This thread is at it for as long as there is something in the queue.
    case first
    /// It was so already, further up its stack.
    case nested
  }

  /// Nil when another thread is at it.
  private func claim() -> Claim? {
    let me = currentThread()
    return state.with { state in
      guard let thread = state.thread else {
        state.thread = me
        return .first
      }
      return thread == me ? .nested : nil
    }
  }

  private func deliver(_ claim: Claim?) {
    guard let claim else { return }
    while let (event, downstream) = next(leaving: claim == .first) {
      switch event {
      case .value(let value):
        add(downstream.receive(value))
      case .completion(let completion):
        _ = end()
        downstream.receive(completion: completion)
      }
    }
  }

  private func add(_ demand: Subscribers.Demand) {
    guard demand > .none else { return }
    let broadcast = state.with { state in
      state.demand += demand
      return state.broadcast
    }
    if let broadcast, broadcast.holds { broadcast.refill(self) }
  }

  private func next(leaving: Bool) -> (Event, any Subscriber<Output, Failure>)? {
    state.with { state in
      if let downstream = state.downstream, let event = state.queue.popFirst() { return (event, downstream) }
      if leaving { state.thread = nil }
      return nil
    }
  }

  /// Nothing more goes to the subscriber. What was held for it is released by the caller, without the lock.
  private func end() -> State? {
    state.with { state in
      guard state.downstream != nil else { return nil }
      let old = state
      state.downstream = nil
      state.broadcast = nil
      state.queue = Queue()
      return old
    }
  }
}
