/// Asks a publisher for one value at a time, for a loop that waits for it. Cancels the subscription when it is released.
final class Puller<Input, Failure: Error>: Sendable {
  private let inlet = Inlet<Input, Failure>()

  init(_ publisher: some Publisher<Input, Failure>) {
    publisher.subscribe(inlet)
  }

  deinit {
    inlet.cancel()
  }

  /// What came next; a completion or the task's cancellation is the end.
  func next(isolation actor: isolated (any Actor)?) async -> Pulled<Input, Failure> {
    let inlet = inlet
    return await withTaskCancellationHandler {
      let pulled = await withCheckedContinuation(isolation: actor) { inlet.wait($0) }
      return pulled.value
    } onCancel: {
      inlet.cancel()
    }
  }
}

/// What a publisher gave to one who waited.
enum Pulled<Input, Failure: Error> {
  case value(Input)
  case end(Failure?)

  func get() throws(Failure) -> Input? {
    switch self {
    case .value(let value): return value
    case .end(nil): return nil
    case .end(let failure?): throw failure
    }
  }
}

extension Pulled where Failure == Never {
  var value: Input? {
    if case .value(let value) = self { value } else { nil }
  }
}

/// Unchecked: what changes is behind the lock.
private final class Inlet<Input, Failure: Error>: Subscriber, @unchecked Sendable {
  typealias Waiter = CheckedContinuation<Carried<Pulled<Input, Failure>>, Never>

  private struct State {
    var subscription: (any Subscription)?
    var waiters = Queue<Waiter>()
    /// Asked for before there was a subscription.
    var owed = Subscribers.Demand.none
    /// What the next one to wait is told, and everyone after it that nothing comes.
    var end: Pulled<Input, Failure>?
  }

  private let state = Locked(State())

  func wait(_ waiter: Waiter) {
    let (end, subscription) = state.with { state -> (Pulled<Input, Failure>?, (any Subscription)?) in
      if let end = state.end {
        state.end = .end(nil)
        return (end, nil)
      }
      state.waiters.append(waiter)
      if state.subscription == nil { state.owed += 1 }
      return (nil, state.subscription)
    }
    if let end { waiter.resume(returning: Carried(value: end)) }
    subscription?.request(.max(1))
  }

  func receive(subscription: any Subscription) {
    let owed = state.with { state -> Subscribers.Demand? in
      guard state.end == nil, state.subscription == nil else { return nil }
      state.subscription = subscription
      return state.owed
    }
    guard let owed else { return subscription.cancel() }
    if owed > .none { subscription.request(owed) }
  }

  func receive(_ input: Input) -> Subscribers.Demand {
    state.with { $0.waiters.popFirst() }?.resume(returning: Carried(value: .value(input)))
    return .none
  }

  func receive(completion: Subscribers.Completion<Failure>) {
    switch completion {
    case .finished: finish(.end(nil))
    case .failure(let failure): finish(.end(failure))
    }
  }

  func cancel() {
    finish(.end(nil))?.cancel()
  }

  @discardableResult private func finish(_ end: Pulled<Input, Failure>) -> (any Subscription)? {
    let (old, first) = state.with { state in
      defer { (state.subscription, state.waiters) = (nil, Queue()) }
      var first: Waiter?
      if state.end == nil {
        first = state.waiters.popFirst()
        state.end = first == nil ? end : .end(nil)
      }
      return (state, first)
    }
    first?.resume(returning: Carried(value: end))
    var rest = old.waiters
    while let waiter = rest.popFirst() { waiter.resume(returning: Carried(value: .end(nil))) }
    return old.subscription
  }
}
