extension Subscribers {
  /// Calls closures with all that comes. They are released with the end or the cancellation.
  public final class Sink<Input, Failure: Error>: Subscriber, Cancellable {
    private struct State {
      var receiveValue: ((Input) -> Void)?
      var receiveCompletion: ((Subscribers.Completion<Failure>) -> Void)?
      var subscription: (any Subscription)?
    }

    private let state: Locked<State>

    public init(
      receiveCompletion: @escaping (Subscribers.Completion<Failure>) -> Void,
      receiveValue: @escaping (Input) -> Void
    ) {
      state = Locked(State(receiveValue: receiveValue, receiveCompletion: receiveCompletion))
    }

    public func receive(subscription: any Subscription) {
      let wanted = state.with { state in
        guard state.receiveValue != nil, state.subscription == nil else { return false }
        state.subscription = subscription
        return true
      }
      wanted ? subscription.request(.unlimited) : subscription.cancel()
    }

    public func receive(_ value: Input) -> Subscribers.Demand {
      state.with { $0.receiveValue }?(value)
      return .none
    }

    public func receive(completion: Subscribers.Completion<Failure>) {
      end().receiveCompletion?(completion)
    }

    public func cancel() {
      end().subscription?.cancel()
    }

    // What was held is released by the caller, without the lock.
    private func end() -> State {
      state.with { state in
        defer { state = State() }
        return state
      }
    }
  }
}

extension Publisher {
  /// Calls the closures with all that comes, until the result is cancelled or released.
  public func sink(
    receiveCompletion: @escaping (Subscribers.Completion<Failure>) -> Void,
    receiveValue: @escaping (Output) -> Void
  ) -> AnyCancellable {
    let sink = Subscribers.Sink(receiveCompletion: receiveCompletion, receiveValue: receiveValue)
    subscribe(sink)
    return AnyCancellable(sink)
  }
}

extension Publisher where Failure == Never {
  /// Calls the closure with each value, until the result is cancelled or released.
  public func sink(receiveValue: @escaping (Output) -> Void) -> AnyCancellable {
    sink(receiveCompletion: { _ in }, receiveValue: receiveValue)
  }

  /// Assigns each value to the object's property, until the result is cancelled or released. The object is held till then.
  public func assign<Root>(to keyPath: ReferenceWritableKeyPath<Root, Output>, on object: Root) -> AnyCancellable {
    sink { object[keyPath: keyPath] = $0 }
  }
}
