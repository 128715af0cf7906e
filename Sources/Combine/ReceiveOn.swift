extension Publishers {
  /// Gives everything where a scheduler says.
  public struct ReceiveOn<Upstream: Publisher, Context: Scheduler>: Publisher {
    public typealias Output = Upstream.Output
    public typealias Failure = Upstream.Failure
    public let upstream: Upstream
    public let scheduler: Context
    public let options: Context.SchedulerOptions?

    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      let (scheduler, options) = (scheduler, options)
      upstream.subscribe(Hop(to: subscriber) { scheduler.schedule(options: options, $0) })
    }
  }
}

extension Publisher {
  /// Gives values and completion where the scheduler says: in their order, one at a time, whatever the scheduler.
  public func receive<S: Scheduler>(on scheduler: S, options: S.SchedulerOptions? = nil)
    -> Publishers.ReceiveOn<Self, S>
  {
    Publishers.ReceiveOn(upstream: self, scheduler: scheduler, options: options)
  }
}

/// The way to where a scheduler says.
///
/// Unchecked: what changes is behind the lock.
private final class Hop<Input, Failure: Error>: Subscriber, Subscription, @unchecked Sendable {
  private enum Event {
    case value(Input)
    case completion(Subscribers.Completion<Failure>)
  }

  private struct State {
    var downstream: (any Subscriber<Input, Failure>)?
    var upstream: (any Subscription)?
    var queue = Queue<Event>()
    var delivers = false
  }

  private let state: Locked<State>
  private let schedule: (@escaping () -> Void) -> Void

  init(to downstream: some Subscriber<Input, Failure>, schedule: @escaping (@escaping () -> Void) -> Void) {
    state = Locked(State(downstream: downstream))
    self.schedule = schedule
  }

  func receive(subscription: any Subscription) {
    let downstream = state.with { state -> (any Subscriber<Input, Failure>)? in
      guard state.upstream == nil, state.downstream != nil else { return nil }
      state.upstream = subscription
      return state.downstream
    }
    downstream.map { $0.receive(subscription: self) } ?? subscription.cancel()
  }

  func receive(_ input: Input) -> Subscribers.Demand {
    put(.value(input))
    return .none
  }

  func receive(completion: Subscribers.Completion<Failure>) {
    put(.completion(completion))
  }

  func request(_ demand: Subscribers.Demand) {
    state.with { $0.upstream }?.request(demand)
  }

  func cancel() {
    end().upstream?.cancel()
  }

  private func put(_ event: Event) {
    let wanted = state.with { state in
      guard state.downstream != nil else { return false }
      state.queue.append(event)
      return true
    }
    if wanted { schedule(deliver) }
  }

  // The one that delivers goes on until nothing is left, so a scheduler that runs several at a time changes no order.
  private func deliver() {
    let first = state.with { state in
      defer { state.delivers = true }
      return !state.delivers
    }
    guard first else { return }
    while let (event, downstream) = next() {
      switch event {
      case .value(let value):
        let more = downstream.receive(value)
        if more > .none { request(more) }
      case .completion(let completion):
        _ = end()
        downstream.receive(completion: completion)
      }
    }
  }

  private func next() -> (Event, any Subscriber<Input, Failure>)? {
    state.with { state in
      if let downstream = state.downstream, let event = state.queue.popFirst() { return (event, downstream) }
      state.delivers = false
      return nil
    }
  }

  // What was held is released by the caller, without the lock.
  private func end() -> State {
    state.with { state in
      let old = state
      state = State(delivers: state.delivers)
      return old
    }
  }
}
