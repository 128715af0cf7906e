import Combine
import Foundation
import Testing

@Suite struct ThreadTests {
  @Test func allThatManyThreadsSendIsGivenOneAtATime() {
    let subject = CurrentValueSubject<Int, Never>(-1)
    // Not behind a lock: that a subscriber is called one at a time is what makes this right.
    final class Tally: @unchecked Sendable {
      var count = 0
      var last = 0
    }
    let tallies = [Tally(), Tally()]
    let cancellables = tallies.map { tally in
      subject.sink { value in
        tally.count += 1
        tally.last = value
      }
    }
    onThreads(8) { index in
      for step in 0..<500 { subject.send(index * 500 + step) }
    }
    #expect(tallies.map(\.count) == [4001, 4001])
    #expect(tallies.map(\.last) == [subject.value, subject.value])
    withExtendedLifetime(cancellables) {}
  }

  @Test func eachSenderOrderIsKeptForEachSubscriber() {
    let subject = PassthroughSubject<(sender: Int, step: Int), Never>()
    let (one, other) = (Log<[Int]>(), Log<[Int]>())
    let cancellables = [one, other].map { log in subject.sink { log.add([$0.sender, $0.step]) } }
    onThreads(4) { index in
      for step in 0..<500 { subject.send((index, step)) }
    }
    #expect(one.all == other.all && one.all.count == 2000)
    for sender in 0..<4 { #expect(one.all.filter { $0[0] == sender }.map { $0[1] } == Array(0..<500)) }
    withExtendedLifetime(cancellables) {}
  }

  @Test func thePropertyHasWhatItsSubscribersWereToldLast() {
    final class Model: @unchecked Sendable {
      @Published var value = 0
    }
    let model = Model()
    let seen = Log<Int>()
    let cancellable = model.$value.sink(receiveValue: seen.add)
    onThreads(8) { index in
      for step in 1...200 { model.value = index * 200 + step }
    }
    #expect(seen.all.count == 1601 && seen.all.last == model.value)
    withExtendedLifetime(cancellable) {}
  }

  @Test func subscribersComeAndGoWhileValuesAreSent() {
    let subject = CurrentValueSubject<Int, Never>(0)
    let wrong = Counter()
    onThreads(6) { index in
      for step in 0..<300 {
        if index < 2 {
          subject.send(step)
        } else {
          // The value held is there when `sink` returns, and nothing comes after `cancel` in this thread's own sending.
          let got = Counter()
          let cancellable = subject.map { $0 + 1 }.removeDuplicates().sink { _ in got.increase() }
          if got.value == 0 { wrong.increase() }
          cancellable.cancel()
        }
      }
    }
    #expect(wrong.value == 0)
  }

  @Test func aSubscriberThatWaitsForAnotherThreadHoldsUpNobody() {
    let subject = CurrentValueSubject<Int, Never>(0)
    let seen = Log<Int>()
    let cancellable = subject.sink { value in
      seen.add(value)
      guard value == 1 else { return }
      // That thread reads, subscribes, sends and cancels while this one is within a subscriber.
      onThreads(1) { _ in
        let late = Log<Int>()
        let other = subject.sink(receiveValue: late.add)
        subject.send(2)
        other.cancel()
        if late.all != [1, 2] || subject.value != 2 { seen.add(-1) }
      }
    }
    subject.send(1)
    #expect(seen.all == [0, 1, 2])
    withExtendedLifetime(cancellable) {}
  }

  @Test func completionsAndCancellationsRaceToOneEnd() {
    for _ in 0..<200 {
      let subject = PassthroughSubject<Int, Never>()
      let ended = Counter()
      let cancellable = subject.sink(receiveCompletion: { _ in ended.increase() }, receiveValue: { _ in })
      onThreads(3) { index in
        switch index {
        case 0: subject.send(completion: .finished)
        case 1: cancellable.cancel()
        default: subject.send(1)
        }
      }
      #expect(ended.value <= 1)
    }
  }
}
