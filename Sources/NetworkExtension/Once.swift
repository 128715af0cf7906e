internal import Synchronization

/// A completion handler that a subclass may call twice, or from anywhere: the first call counts.
final class Once<Value>: Sendable {
  private let handler: Mutex<(@Sendable (Value) -> Void)?>

  init(_ handler: @escaping @Sendable (Value) -> Void) { self.handler = Mutex(handler) }

  func callAsFunction(_ value: Value) {
    let taken = handler.withLock { handler in
      defer { handler = nil }
      return handler
    }
    taken?(value)
  }
}
