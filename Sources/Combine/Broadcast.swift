/// What subjects and published properties have in common: those who are attached, and the value held for those who come.
///
/// Each subscriber has a queue of its own, filled in one order for all, and is given what is in it by one thread at a time:
/// whoever finds nobody at it. No lock is held while a subscriber runs, so nobody waits for another's subscriber.
final class Broadcast<Output, Failure: Error>: @unchecked Sendable {
  // Unchecked: what changes is behind the lock.
  private struct State {
    var current: Output?
    /// Of `current`; one for each value that was ever sent.
    var version: UInt64 = 1
    var newest: UInt64 = 1
    var conduits: [Conduit<Output, Failure>] = []
    var completion: Subscribers.Completion<Failure>?
    var upstream: [any Subscription] = []
  }

  private let state: Locked<State>
  /// Whether there is a value held for those who come later.
  let holds: Bool

  /// With nothing held.
  init() {
    holds = false
    state = Locked(State())
  }

  init(current: Output) {
    holds = true
    state = Locked(State(current: current))
  }

  deinit {
    for subscription in state.with({ $0.upstream }) { subscription.cancel() }
  }

  /// The value held.
  var held: Output {
    guard let current = state.with({ $0.current }) else { preconditionFailure("asked for a value where none is held") }
    return current
  }

  func attach<S: Subscriber>(_ subscriber: S) where S.Input == Output, S.Failure == Failure {
    let conduit = Conduit(to: subscriber, from: self)
    let completion = state.with { state in
      if state.completion == nil { state.conduits.append(conduit) }
      return state.completion
    }
    if let completion {
      subscriber.receive(subscription: Subscriptions.empty)
      subscriber.receive(completion: completion)
    } else {
      conduit.open()
    }
  }

  func detach(_ conduit: Conduit<Output, Failure>) {
    state.with { $0.conduits.removeAll { $0 === conduit } }
  }

  /// Holds the value, if any is held here, then gives it to all.
  func send(_ value: Output) {
    // The old value is released without the lock: what its end runs may come back here.
    var old: Output?
    let conduits = state.with { state -> [Conduit<Output, Failure>] in
      guard state.completion == nil else { return [] }
      state.newest += 1
      if holds {
        old = state.current
        state.current = value
        state.version = state.newest
      }
      for conduit in state.conduits { conduit.put(value, version: state.newest) }
      return state.conduits
    }
    for conduit in conduits { conduit.deliver() }
    withExtendedLifetime(old) {}
  }

  /// Gives the value to all, and holds it only then. Those who came in between get it after.
  func announce(_ value: Output) {
    let (version, conduits) = state.with { state in
      state.newest += 1
      for conduit in state.conduits { conduit.put(value, version: state.newest) }
      return (state.newest, state.conduits)
    }
    for conduit in conduits { conduit.deliver() }
    var old: Output?
    let later = state.with { state -> [Conduit<Output, Failure>] in
      // One that was sent while this one was delivered is the newer one.
      guard version > state.version else { return [] }
      old = state.current
      state.current = value
      state.version = version
      return state.conduits.filter { $0.put(value, version: version) }
    }
    for conduit in later { conduit.deliver() }
    withExtendedLifetime(old) {}
  }

  func send(completion: Subscribers.Completion<Failure>) {
    let (conduits, upstream) = state.with { state -> ([Conduit<Output, Failure>], [any Subscription]) in
      guard state.completion == nil else { return ([], []) }
      state.completion = completion
      for conduit in state.conduits { conduit.put(completion) }
      defer { (state.conduits, state.upstream) = ([], []) }
      return (state.conduits, state.upstream)
    }
    for subscription in upstream { subscription.cancel() }
    for conduit in conduits { conduit.deliver() }
  }

  /// Lets another publisher feed this one for as long as it lives and has not ended.
  func keep(_ subscription: any Subscription) {
    let kept = state.with { state in
      guard state.completion == nil else { return false }
      state.upstream.append(subscription)
      return true
    }
    kept ? subscription.request(.unlimited) : subscription.cancel()
  }

  /// Puts the value held into the conduit's queue, unless it has had it or takes no more.
  func refill(_ conduit: Conduit<Output, Failure>) {
    state.with { state in
      guard let current = state.current else { return }
      conduit.put(current, version: state.version)
    }
  }
}
