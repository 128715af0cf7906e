import Combine
import Foundation
import Synchronization

/// What was seen, from any thread.
final class Log<Element>: @unchecked Sendable {
  // Unchecked: behind the lock.
  private let lock = NSLock()
  private var entries: [Element] = []

  var all: [Element] { lock.withLock { entries } }

  func add(_ entry: Element) {
    lock.withLock { entries.append(entry) }
  }
}

final class Counter: Sendable {
  private let count = Mutex(0)
  var value: Int { count.withLock { $0 } }
  func increase() { count.withLock { $0 += 1 } }
}

/// Asks for values by hand, and keeps what it gets.
final class ManualSubscriber<Input>: Subscriber {
  typealias Failure = Never

  var subscription: (any Subscription)?
  var values: [Input] = []
  var completions = 0
  var more = Subscribers.Demand.none

  func receive(subscription: any Subscription) { self.subscription = subscription }

  func receive(_ input: Input) -> Subscribers.Demand {
    values.append(input)
    return more
  }

  func receive(completion: Subscribers.Completion<Never>) { completions += 1 }
}

struct Oops: Error, Equatable {}

/// Runs it on that many threads of their own, and waits for all.
func onThreads(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) {
  let done = DispatchGroup()
  for index in 0..<count {
    done.enter()
    Thread {
      body(index)
      done.leave()
    }.start()
  }
  done.wait()
}
