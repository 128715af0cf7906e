import Combine
import Synchronization

/// What a publisher has given, in order.
final class PublisherRecord<Value: Sendable>: Sendable {
  private let received = Mutex<[Value]>([])
  private let subscription = Mutex<AnyCancellable?>(nil)

  init(_ publisher: AnyPublisher<Value, Never>) {
    let made = publisher.sink { [weak self] value in self?.received.withLock { $0.append(value) } }
    subscription.withLock { $0 = made }
  }

  var values: [Value] { received.withLock { $0 } }
  var last: Value? { received.withLock { $0.last } }
}
