/// What an operator makes of a value.
enum Step<Output> {
  case pass(Output)
  case skip
  /// The value, and the end.
  case last(Output)
}

/// The way through an operator that makes something of each value and changes nothing else.
///
/// Unchecked: what changes is behind the lock. The step is called with one value at a time, as the publisher gives them.
final class StepSubscription<Input, Output, Failure: Error>: Subscriber, Subscription, @unchecked Sendable {
  private struct State {
    var downstream: (any Subscriber<Output, Failure>)?
    var step: ((Input) -> Step<Output>)?
    var upstream: (any Subscription)?
  }

  private let state: Locked<State>

  init(to downstream: some Subscriber<Output, Failure>, step: @escaping (Input) -> Step<Output>) {
    state = Locked(State(downstream: downstream, step: step))
  }

  func receive(subscription: any Subscription) {
    let downstream = state.with { state -> (any Subscriber<Output, Failure>)? in
      guard state.upstream == nil, state.downstream != nil else { return nil }
      state.upstream = subscription
      return state.downstream
    }
    downstream.map { $0.receive(subscription: self) } ?? subscription.cancel()
  }

  func receive(_ input: Input) -> Subscribers.Demand {
    let (downstream, step) = state.with { ($0.downstream, $0.step) }
    guard let downstream, let step else { return .none }
    switch step(input) {
    case .pass(let output):
      return downstream.receive(output)
    case .skip:
      return .max(1)
    case .last(let output):
      let upstream = end().upstream
      _ = downstream.receive(output)
      downstream.receive(completion: .finished)
      upstream?.cancel()
      return .none
    }
  }

  func receive(completion: Subscribers.Completion<Failure>) {
    end().downstream?.receive(completion: completion)
  }

  func request(_ demand: Subscribers.Demand) {
    state.with { $0.upstream }?.request(demand)
  }

  func cancel() {
    end().upstream?.cancel()
  }

  // What was held is released by the caller, without the lock.
  private func end() -> State {
    state.with { state in
      defer { state = State() }
      return state
    }
  }
}
