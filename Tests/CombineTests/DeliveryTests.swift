import Combine
import Testing

/// What happens when a subscriber sends, cancels or subscribes while it is given a value.
@Suite struct DeliveryTests {
  @Test func whatIsSentWithinASubscriberReachesAllInOrder() {
    let subject = PassthroughSubject<Int, Never>()
    let (first, second) = (Log<String>(), Log<Int>())
    let cancellables = [
      subject.sink { value in
        first.add("\(value) begins")
        if value < 3 { subject.send(value + 1) }
        first.add("\(value) ends")
      },
      subject.sink(receiveValue: second.add),
    ]
    subject.send(1)
    #expect(first.all == ["1 begins", "2 begins", "3 begins", "3 ends", "2 ends", "1 ends"])
    #expect(second.all == [1, 2, 3])
    withExtendedLifetime(cancellables) {}
  }

  @Test func aHeldValueSetWithinASubscriberIsTheLastThatAllGet() {
    let subject = CurrentValueSubject<Int, Never>(0)
    let (first, second) = (Log<Int>(), Log<Int>())
    let cancellables = [
      subject.sink { value in
        first.add(value)
        if value > 10 { subject.send(10) }
      },
      subject.sink(receiveValue: second.add),
    ]
    subject.send(11)
    #expect(first.all == [0, 11, 10] && second.all == [0, 11, 10] && subject.value == 10)
    withExtendedLifetime(cancellables) {}
  }

  @Test func aSubscriberThatCancelsItselfGetsNothingMore() {
    let subject = PassthroughSubject<Int, Never>()
    let seen = Log<Int>()
    var cancellable: AnyCancellable?
    cancellable = subject.sink { value in
      seen.add(value)
      cancellable?.cancel()
      subject.send(value + 1)
    }
    subject.send(1)
    subject.send(2)
    #expect(seen.all == [1])
  }

  @Test func aSubscriberThatIsCancelledByAnotherGetsNothingMore() {
    let subject = PassthroughSubject<Int, Never>()
    let seen = Log<Int>()
    var second: AnyCancellable?
    let first = subject.sink { _ in second = nil }
    second = subject.sink(receiveValue: seen.add)
    subject.send(1)
    #expect(seen.all.isEmpty && second == nil)
    withExtendedLifetime(first) {}
  }

  @Test func oneThatReleasesItselfInItsCompletionIsFine() {
    let subject = PassthroughSubject<Int, Never>()
    let seen = Log<Int>()
    var cancellable: AnyCancellable?
    cancellable = subject.sink(
      receiveCompletion: { _ in
        cancellable = nil
        seen.add(-1)
      }, receiveValue: seen.add)
    subject.send(completion: .finished)
    #expect(seen.all == [-1] && cancellable == nil)
  }

  @Test func oneThatComesWithinASubscriberGetsWhatIsHeldOnce() {
    let subject = CurrentValueSubject<Int, Never>(0)
    let seen = Log<Int>()
    var late: AnyCancellable?
    let first = subject.sink { value in
      if value == 1 { late = subject.sink(receiveValue: seen.add) }
    }
    subject.send(1)
    #expect(seen.all == [1])
    subject.send(2)
    #expect(seen.all == [1, 2])
    withExtendedLifetime((first, late)) {}
  }

  @Test func oneThatAsksForEachValueByItselfTakesAnyNumberOfThem() throws {
    let subject = CurrentValueSubject<Int, Never>(0)
    let subscriber = ManualSubscriber<Int>()
    subscriber.more = .max(1)
    subject.subscribe(subscriber)
    try #require(subscriber.subscription).request(.max(1))
    for value in 1...1000 { subject.send(value) }
    #expect(subscriber.values == Array(0...1000))
  }

  @Test func aValueWhoseEndSendsLocksNothing() {
    final class Sends {
      let count: Counter
      let subject: PassthroughSubject<Void, Never>
      init(_ count: Counter, _ subject: PassthroughSubject<Void, Never>) {
        (self.count, self.subject) = (count, subject)
      }
      deinit {
        count.increase()
        subject.send()
      }
    }
    let (count, told) = (Counter(), PassthroughSubject<Void, Never>())
    let subject = CurrentValueSubject<Sends?, Never>(Sends(count, told))
    let cancellable = told.sink { _ = subject.value }
    subject.send(nil)
    #expect(count.value == 1)
    withExtendedLifetime(cancellable) {}
  }
}
