/// What can be cancelled: a subscription, above all.
public protocol Cancellable {
  /// Ends the activity. A second call does nothing.
  func cancel()
}

extension Cancellable {
  /// Keeps it for as long as the collection does.
  public func store(in collection: inout some RangeReplaceableCollection<AnyCancellable>) {
    AnyCancellable(self).store(in: &collection)
  }

  /// Keeps it for as long as the set does.
  public func store(in set: inout Set<AnyCancellable>) {
    AnyCancellable(self).store(in: &set)
  }
}

/// Cancels what it was made for when it is released, and at most once.
///
/// Unchecked: the action is behind a lock and is taken out before it runs, on the thread that cancels or releases.
public final class AnyCancellable: Cancellable, Hashable, @unchecked Sendable {
  private let action: Locked<(() -> Void)?>

  /// What `cancel` does, once.
  public init(_ cancel: @escaping () -> Void) {
    action = Locked(cancel)
  }

  /// Cancels `canceller`.
  public init(_ canceller: some Cancellable) {
    action = Locked(canceller.cancel)
  }

  deinit {
    cancel()
  }

  public func cancel() {
    let action = action.with { action in
      defer { action = nil }
      return action
    }
    action?()
  }

  /// Keeps it for as long as the collection does.
  public func store(in collection: inout some RangeReplaceableCollection<AnyCancellable>) {
    collection.append(self)
  }

  /// Keeps it for as long as the set does.
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
