/// The base of every provider: what the system tells it about itself.
///
/// The system calls a provider's methods from one place at a time. State of a subclass that its own tasks share is the
/// subclass's to guard; `@unchecked Sendable` says no more than that.
open class NEProvider: NSObject, @unchecked Sendable {
  public override init() { super.init() }

  /// The machine is about to sleep; it waits for `completionHandler` ten seconds at most. The base calls it at once.
  open func sleep(completionHandler: @escaping @Sendable () -> Void) { completionHandler() }

  /// The machine is awake again.
  open func wake() {}
}
