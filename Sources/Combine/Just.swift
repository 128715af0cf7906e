/// Gives one value and ends.
public struct Just<Output>: Publisher {
  public typealias Failure = Never

  public let output: Output

  public init(_ output: Output) {
    self.output = output
  }

  public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Never {
    subscriber.receive(subscription: Once(output, to: subscriber))
  }

  private final class Once: Subscription {
    private let state: Locked<(value: Output, downstream: any Subscriber<Output, Never>)?>

    init(_ value: Output, to downstream: some Subscriber<Output, Never>) {
      state = Locked((value, downstream))
    }

    func request(_ demand: Subscribers.Demand) {
      guard demand > .none, let (value, downstream) = take() else { return }
      _ = downstream.receive(value)
      downstream.receive(completion: .finished)
    }

    func cancel() {
      _ = take()
    }

    private func take() -> (value: Output, downstream: any Subscriber<Output, Never>)? {
      state.with { state in
        defer { state = nil }
        return state
      }
    }
  }
}

extension Just: Sendable where Output: Sendable {}

/// Gives nothing and ends, at once or never.
public struct Empty<Output, Failure: Error>: Publisher, Sendable {
  public let completeImmediately: Bool

  public init(completeImmediately: Bool = true) {
    self.completeImmediately = completeImmediately
  }

  public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
    subscriber.receive(subscription: Subscriptions.empty)
    if completeImmediately { subscriber.receive(completion: .finished) }
  }
}

/// Fails at once.
public struct Fail<Output, Failure: Error>: Publisher, Sendable {
  public let error: Failure

  public init(error: Failure) {
    self.error = error
  }

  public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
    subscriber.receive(subscription: Subscriptions.empty)
    subscriber.receive(completion: .failure(error))
  }
}
