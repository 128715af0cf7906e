/// A publisher into which values are put by hand.
public protocol Subject<Output, Failure>: AnyObject, Publisher {
  /// Gives a value to the subscribers.
  func send(_ value: Output)
  /// Ends it; nothing comes after.
  func send(completion: Subscribers.Completion<Failure>)
  /// Takes a subscription to another publisher, which then feeds this subject.
  func send(subscription: any Subscription)
}

extension Subject where Output == Void {
  public func send() {
    send(())
  }
}

/// Hands on values to those who are subscribed at the time, and keeps none.
///
/// Every subscriber gets the values in the order of the calls and one at a time. `send` gives them on the thread that calls,
/// also from within a subscriber; while another thread is within a subscriber, that thread gives it the value.
public final class PassthroughSubject<Output, Failure: Error>: Subject {
  private let broadcast = Broadcast<Output, Failure>()

  public init() {}

  public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
    broadcast.attach(subscriber)
  }

  public func send(_ value: Output) {
    broadcast.send(value)
  }

  public func send(completion: Subscribers.Completion<Failure>) {
    broadcast.send(completion: completion)
  }

  public func send(subscription: any Subscription) {
    broadcast.keep(subscription)
  }
}

/// Holds a value, gives it to each new subscriber first, and hands on each new one.
///
/// Order and threads as with `PassthroughSubject`. A subscriber that asks for more only later gets the newest value then.
public final class CurrentValueSubject<Output, Failure: Error>: Subject {
  private let broadcast: Broadcast<Output, Failure>

  public init(_ value: Output) {
    broadcast = Broadcast(current: value)
  }

  /// The newest value. Setting it is the same as sending it.
  public var value: Output {
    get { broadcast.held }
    set { send(newValue) }
  }

  public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
    broadcast.attach(subscriber)
  }

  public func send(_ value: Output) {
    broadcast.send(value)
  }

  public func send(completion: Subscribers.Completion<Failure>) {
    broadcast.send(completion: completion)
  }

  public func send(subscription: any Subscription) {
    broadcast.keep(subscription)
  }
}

// Unchecked: everything that changes is in the broadcast, behind its lock.
extension PassthroughSubject: @unchecked Sendable where Output: Sendable {}
extension CurrentValueSubject: @unchecked Sendable where Output: Sendable {}

/// Puts what a publisher gives into a subject.
final class SubjectFeed<S: Subject>: Subscriber, Cancellable {
  private let state: Locked<(subject: S?, subscription: (any Subscription)?)>

  init(_ subject: S) {
    state = Locked((subject, nil))
  }

  func receive(subscription: any Subscription) {
    let subject = state.with { state -> S? in
      guard state.subject != nil, state.subscription == nil else { return nil }
      state.subscription = subscription
      return state.subject
    }
    guard let subject else { return subscription.cancel() }
    subject.send(subscription: subscription)
  }

  func receive(_ input: S.Output) -> Subscribers.Demand {
    state.with { $0.subject }?.send(input)
    return .none
  }

  func receive(completion: Subscribers.Completion<S.Failure>) {
    let subject = take().subject
    subject?.send(completion: completion)
  }

  func cancel() {
    take().subscription?.cancel()
  }

  private func take() -> (subject: S?, subscription: (any Subscription)?) {
    state.with { state in
      defer { state = (nil, nil) }
      return state
    }
  }
}
