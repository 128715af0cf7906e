import Combine
import Testing

@Suite struct SubjectTests {
  @Test func aPassthroughSubjectGivesOnlyWhatComesAfter() {
    let subject = PassthroughSubject<Int, Never>()
    let seen = Log<Int>()
    subject.send(1)
    let cancellable = subject.sink(receiveValue: seen.add)
    subject.send(2)
    subject.send(3)
    cancellable.cancel()
    subject.send(4)
    #expect(seen.all == [2, 3])
  }

  @Test func aCurrentValueSubjectGivesItsValueFirstAndHasTheNewOneWhenItIsGiven() {
    let subject = CurrentValueSubject<Int, Never>(1)
    let seen = Log<[Int]>()
    let cancellable = subject.sink { seen.add([$0, subject.value]) }
    subject.send(2)
    subject.value = 3
    #expect(seen.all == [[1, 1], [2, 2], [3, 3]])
    cancellable.cancel()
    subject.send(4)
    #expect(seen.all.count == 3 && subject.value == 4)
  }

  @Test func nothingComesAfterACompletion() {
    let subject = CurrentValueSubject<Int, Oops>(1)
    let seen = Log<String>()
    let subscribe = {
      subject.sink(receiveCompletion: { seen.add("\($0)") }, receiveValue: { seen.add("\($0)") })
    }
    let first = subscribe()
    subject.send(completion: .failure(Oops()))
    subject.send(2)
    subject.send(completion: .finished)
    #expect(seen.all == ["1", "failure(CombineTests.Oops())"] && subject.value == 1)
    let late = subscribe()
    #expect(seen.all == ["1", "failure(CombineTests.Oops())", "failure(CombineTests.Oops())"])
    withExtendedLifetime((first, late)) {}
  }

  @Test func noMoreIsGivenThanWasAskedFor() throws {
    let subject = PassthroughSubject<Int, Never>()
    let subscriber = ManualSubscriber<Int>()
    subject.subscribe(subscriber)
    subject.send(1)
    let subscription = try #require(subscriber.subscription)
    subscription.request(.max(2))
    for value in 2...5 { subject.send(value) }
    #expect(subscriber.values == [2, 3])
    subscriber.more = .max(1)
    subscription.request(.max(1))
    for value in 6...8 { subject.send(value) }
    #expect(subscriber.values == [2, 3, 6, 7, 8])
    subject.send(completion: .finished)
    #expect(subscriber.completions == 1)
  }

  @Test func aCompletionNeedsNoDemand() {
    let subject = CurrentValueSubject<Int, Never>(1)
    let subscriber = ManualSubscriber<Int>()
    subject.subscribe(subscriber)
    subject.send(completion: .finished)
    #expect(subscriber.values.isEmpty && subscriber.completions == 1)
  }

  @Test func whoAsksLaterGetsTheNewestValueHeld() throws {
    let subject = CurrentValueSubject<Int, Never>(1)
    let subscriber = ManualSubscriber<Int>()
    subject.subscribe(subscriber)
    let subscription = try #require(subscriber.subscription)
    subscription.request(.max(1))
    subject.send(2)
    subject.send(3)
    #expect(subscriber.values == [1])
    subscription.request(.max(1))
    #expect(subscriber.values == [1, 3])
    subscription.request(.max(1))
    #expect(subscriber.values == [1, 3])
    subject.send(4)
    #expect(subscriber.values == [1, 3, 4])
  }

  @Test func theSubscriptionComesFirst() {
    final class Order: Subscriber {
      typealias Input = Int
      typealias Failure = Never
      var seen: [String] = []
      func receive(subscription: any Subscription) {
        seen.append("subscription")
        subscription.request(.unlimited)
      }
      func receive(_ input: Int) -> Subscribers.Demand {
        seen.append("\(input)")
        return .none
      }
      func receive(completion: Subscribers.Completion<Never>) { seen.append("end") }
    }
    let order = Order()
    CurrentValueSubject<Int, Never>(1).subscribe(order)
    Just(2).subscribe(order)
    #expect(order.seen == ["subscription", "1", "subscription", "2", "end"])
  }

  @Test func aSubjectFeedsAnotherUntilThatIsCancelled() {
    let source = PassthroughSubject<Int, Never>()
    let target = CurrentValueSubject<Int, Never>(0)
    let feed = source.subscribe(target)
    source.send(1)
    #expect(target.value == 1)
    feed.cancel()
    source.send(2)
    #expect(target.value == 1)
    let again = source.subscribe(target)
    source.send(3)
    #expect(target.value == 3)
    withExtendedLifetime(again) {}
  }

  @Test func aSubscriptionHoldsNothingOnceItIsCancelledOrOver() {
    final class Kept: Sendable {}
    let subject = PassthroughSubject<Int, Never>()
    for ends in [false, true] {
      weak var released: Kept?
      let cancellable: AnyCancellable
      do {
        let kept = Kept()
        released = kept
        cancellable = subject.sink(
          receiveCompletion: { _ in withExtendedLifetime(kept) {} },
          receiveValue: { _ in withExtendedLifetime(kept) {} })
      }
      #expect(released != nil)
      ends ? subject.send(completion: .finished) : cancellable.cancel()
      #expect(released == nil)
      withExtendedLifetime(cancellable) {}
    }
  }
}
