/// The value of a published property, those who are told of it, and what it is fed by.
///
/// Unchecked: what changes is behind locks.
final class PublishedValue<Value>: @unchecked Sendable {
  let broadcast: Broadcast<Value, Never>
  private let extras: Locked<(announcement: ObservableObjectPublisher?, feeds: [PublishedFeed<Value>])>

  init(_ value: Value) {
    broadcast = Broadcast(current: value)
    extras = Locked((nil, []))
  }

  deinit {
    for feed in extras.with({ $0.feeds }) { feed.cancel() }
  }

  var held: Value { broadcast.held }

  /// Who is told before any property of the object changes.
  var announcement: ObservableObjectPublisher? {
    get { extras.with { $0.announcement } }
    set { extras.with { $0.announcement = newValue } }
  }

  func willChange(of owner: AnyObject) {
    announcement?.send()
  }

  func keep(_ feed: PublishedFeed<Value>) {
    extras.with { $0.feeds.append(feed) }
  }

  func drop(_ feed: PublishedFeed<Value>) {
    extras.with { $0.feeds.removeAll { $0 === feed } }
  }
}

/// Assigns what a publisher gives to a property, for as long as the property lives.
final class PublishedFeed<Value>: Subscriber, Cancellable {
  private struct State {
    weak var target: PublishedValue<Value>?
    var subscription: (any Subscription)?
    var over = false
  }

  private let state: Locked<State>

  init(_ target: PublishedValue<Value>) {
    state = Locked(State(target: target))
  }

  func receive(subscription: any Subscription) {
    let wanted = state.with { state in
      guard !state.over, state.subscription == nil else { return false }
      state.subscription = subscription
      return true
    }
    wanted ? subscription.request(.unlimited) : subscription.cancel()
  }

  func receive(_ input: Value) -> Subscribers.Demand {
    if let target = state.with({ $0.over ? nil : $0.target }) {
      target.announcement?.send()
      target.broadcast.announce(input)
    }
    return .none
  }

  func receive(completion: Subscribers.Completion<Never>) {
    state.with { $0.target }?.drop(self)
    _ = end()
  }

  func cancel() {
    end()?.cancel()
  }

  private func end() -> (any Subscription)? {
    state.with { state in
      state.over = true
      defer { state.subscription = nil }
      return state.subscription
    }
  }
}

extension Publisher where Failure == Never {
  /// Assigns each value to the property, for as long as the property lives: `.assign(to: &$name)`.
  public func assign(to published: inout Published<Output>.Publisher) {
    let feed = PublishedFeed(published.value)
    published.value.keep(feed)
    subscribe(feed)
  }
}
