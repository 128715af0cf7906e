import Combine
import Synchronization
import Testing

@Suite struct AnyCancellableTests {
  @Test func cancelsOnceAndWhenItIsReleased() {
    let count = Count()
    let first = AnyCancellable { count.increase() }
    first.cancel()
    first.cancel()
    #expect(count.value == 1)
    do {
      _ = AnyCancellable { count.increase() }
    }
    #expect(count.value == 2)
  }

  @Test func aCollectionKeepsIt() {
    let count = Count()
    var kept: Set<AnyCancellable> = []
    AnyCancellable { count.increase() }.store(in: &kept)
    #expect(count.value == 0)
    kept.removeAll()
    #expect(count.value == 1)
  }
}

private final class Count: Sendable {
  private let count = Mutex(0)
  var value: Int { count.withLock { $0 } }
  func increase() { count.withLock { $0 += 1 } }
}
