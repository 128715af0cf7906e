import Synchronization

/// What can be cancelled: a subscription, above all.
public protocol Cancellable {
  /// Ends the activity. A second call does nothing.
  func cancel()
}

/// Cancels what it was made for when it is released, and at most once.
public final class AnyCancellable: Cancellable, Hashable, Sendable {
  private let action: Mutex<(@Sendable () -> Void)?>

  public init(_ cancel: @escaping @Sendable () -> Void) {
    action = Mutex(cancel)
  }

  public convenience init(_ canceller: some Cancellable & Sendable) {
    self.init { canceller.cancel() }
  }

  deinit {
    cancel()
  }

  public func cancel() {
    let action = action.withLock { action in
      defer { action = nil }
      return action
    }
    action?()
  }

  /// Keeps it for as long as the collection does.
  public func store(in collection: inout some RangeReplaceableCollection<AnyCancellable>) {
    collection.append(self)
  }

  public func store(in set: inout Set<AnyCancellable>) {
    set.insert(self)
  }

  public static func == (one: AnyCancellable, other: AnyCancellable) -> Bool {
    one === other
  }

  public func hash(into hasher: inout Hasher) {
    hasher.combine(ObjectIdentifier(self))
  }
}
