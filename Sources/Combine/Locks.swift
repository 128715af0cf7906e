import Glibc

/// State behind a lock. No code of a user runs while it is held: what is to be called or released comes out first.
///
/// Unchecked: the state is touched inside `with` only, which one thread at a time is in.
final class Locked<State>: @unchecked Sendable {
  private var state: State
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>

  init(_ state: State) {
    self.state = state
    mutex = .allocate(capacity: 1)
    pthread_mutex_init(mutex, nil)
  }

  deinit {
    pthread_mutex_destroy(mutex)
    mutex.deallocate()
  }

  func with<Result>(_ body: (inout State) throws -> Result) rethrows -> Result {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return try body(&state)
  }
}

/// Carries what is not `Sendable` to where a scheduler or an iterator has it delivered. Combine's closures and values are
/// not `Sendable`, here as on the platform that it comes from; who subscribes says where they are called.
struct Carried<Value>: @unchecked Sendable {
  let value: Value
}

/// The thread that runs, to tell a call within a delivery from one beside it.
func currentThread() -> UInt {
  UInt(pthread_self())
}

/// What waits its turn, first in, first out.
struct Queue<Element> {
  private var elements: [Element?] = []
  private var head = 0

  mutating func append(_ element: Element) {
    elements.append(element)
  }

  mutating func popFirst() -> Element? {
    guard head < elements.count else { return nil }
    defer {
      elements[head] = nil
      head += 1
      if head == elements.count {
        elements.removeAll(keepingCapacity: head <= 16)
        head = 0
      }
    }
    return elements[head]
  }
}
