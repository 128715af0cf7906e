import Combine
import Testing

@Suite struct AnyCancellableTests {
  @Test func cancelsOnceAndWhenItIsReleased() {
    let count = Counter()
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
    let count = Counter()
    var kept: Set<AnyCancellable> = []
    AnyCancellable { count.increase() }.store(in: &kept)
    #expect(count.value == 0)
    kept.removeAll()
    #expect(count.value == 1)
    var list: [AnyCancellable] = []
    AnyCancellable { count.increase() }.store(in: &list)
    #expect(count.value == 1)
    list.removeAll()
    #expect(count.value == 2)
  }

  @Test func cancelsWhatItWrapsAndReleasesIt() {
    final class Kept: Cancellable {
      let count: Counter
      init(_ count: Counter) { self.count = count }
      func cancel() { count.increase() }
    }
    let count = Counter()
    weak var released: Kept?
    let cancellable: AnyCancellable
    do {
      let kept = Kept(count)
      released = kept
      cancellable = AnyCancellable(kept)
    }
    #expect(released != nil)
    cancellable.cancel()
    #expect(count.value == 1 && released == nil)
  }

  @Test func manyThreadsCancelOnce() {
    let count = Counter()
    let cancellable = AnyCancellable { count.increase() }
    onThreads(8) { _ in cancellable.cancel() }
    #expect(count.value == 1)
  }
}
