import Combine
import Foundation
import Testing

@Suite struct SchedulerTests {
  @Test func valuesComeOnTheQueueInOrder() async {
    let queue = DispatchQueue(label: "test")
    let key = DispatchSpecificKey<Bool>()
    queue.setSpecific(key: key, value: true)
    let subject = PassthroughSubject<Int, Never>()
    let seen = Log<Int>()
    let elsewhere = Counter()
    let cancellable = Mutable<AnyCancellable?>(nil)
    await withCheckedContinuation { done in
      cancellable.value = subject.receive(on: queue).sink(
        receiveCompletion: { _ in done.resume() },
        receiveValue: {
          if DispatchQueue.getSpecific(key: key) != true { elsewhere.increase() }
          seen.add($0)
        })
      for value in 1...100 { subject.send(value) }
      subject.send(completion: .finished)
    }
    #expect(seen.all == Array(1...100) && elsewhere.value == 0)
  }

  @Test func aQueueThatRunsSeveralAtATimeChangesNoOrder() async {
    let operations = OperationQueue()
    operations.maxConcurrentOperationCount = 8
    for send in [
      { (subject: PassthroughSubject<Int, Never>) in subject.receive(on: operations).eraseToAnyPublisher() },
      { $0.receive(on: DispatchQueue.global()).eraseToAnyPublisher() },
    ] {
      let subject = PassthroughSubject<Int, Never>()
      let seen = Log<Int>()
      let cancellable = Mutable<AnyCancellable?>(nil)
      await withCheckedContinuation { done in
        cancellable.value = send(subject).sink(receiveCompletion: { _ in done.resume() }, receiveValue: seen.add)
        for value in 1...1000 { subject.send(value) }
        subject.send(completion: .finished)
      }
      #expect(seen.all == Array(1...1000))
    }
  }

  @Test func aRunLoopOfAnotherThreadWakes() throws {
    let (ready, ended) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let loop = Mutable<RunLoop?>(nil)
    let idle = Mutable<Timer?>(nil)
    let thread = Thread {
      loop.value = .current
      let timer = Timer(timeInterval: 3600, repeats: true) { _ in }
      idle.value = timer
      RunLoop.current.add(timer, forMode: .default)
      ready.signal()
      // Until there is no timer left.
      RunLoop.current.run()
      ended.signal()
    }
    thread.start()
    ready.wait()
    let there = try #require(loop.value)
    let subject = PassthroughSubject<Int, Never>()
    let seen = Log<Int>()
    let elsewhere = Counter()
    let cancellable = subject.receive(on: there).sink {
      if Thread.current !== thread { elsewhere.increase() }
      seen.add($0)
      if $0 == 3 { idle.value?.invalidate() }
    }
    for value in 1...3 { subject.send(value) }
    ended.wait()
    #expect(seen.all == [1, 2, 3] && elsewhere.value == 0)
    withExtendedLifetime(cancellable) {}
  }

  @Test func nothingComesAfterACancellationEvenWhenItWasOnItsWay() {
    let queue = DispatchQueue(label: "test")
    let subject = PassthroughSubject<Int, Never>()
    let seen = Log<Int>()
    queue.suspend()
    let cancellable = subject.receive(on: queue).sink(receiveValue: seen.add)
    subject.send(1)
    cancellable.cancel()
    queue.resume()
    queue.sync {}
    #expect(seen.all.isEmpty)
  }

  @Test func demandCrossesTheQueue() throws {
    let queue = DispatchQueue(label: "test")
    let subject = PassthroughSubject<Int, Never>()
    let subscriber = ManualSubscriber<Int>()
    subject.receive(on: queue).subscribe(subscriber)
    try #require(subscriber.subscription).request(.max(2))
    for value in 1...3 { subject.send(value) }
    queue.sync {}
    #expect(subscriber.values == [1, 2])
    queue.sync { subscriber.more = .max(1) }
    try #require(subscriber.subscription).request(.max(1))
    subject.send(4)
    queue.sync {}
    subject.send(5)
    queue.sync {}
    #expect(subscriber.values == [1, 2, 4, 5])
  }

  @Test func theImmediateSchedulerIsAtOnce() {
    let seen = Log<Int>()
    _ = Just(1).receive(on: ImmediateScheduler.shared).sink(receiveValue: seen.add)
    #expect(seen.all == [1])
  }

  @Test(arguments: ["queue", "operations"]) func somethingRunsLaterAndAgain(_ which: String) async {
    let fired = Counter()
    let cancellable = Mutable<(any Cancellable)?>(nil)
    await withCheckedContinuation { done in
      let action = {
        fired.increase()
        if fired.value == 3 { done.resume() }
      }
      switch which {
      case "queue":
        let queue = DispatchQueue(label: "test")
        cancellable.value = queue.schedule(after: queue.now, interval: .milliseconds(1), action)
      default:
        let operations = OperationQueue()
        cancellable.value = operations.schedule(after: operations.now, interval: .milliseconds(1), action)
      }
    }
    cancellable.value?.cancel()
    #expect(fired.value >= 3)
  }

  @Test func aMomentOfAQueueMovesByAnyLength() {
    typealias Moment = DispatchQueue.SchedulerTimeType
    let moment = Moment(DispatchTime(uptimeNanoseconds: 5_000_000_000))
    #expect(moment.advanced(by: .seconds(2)).dispatchTime.uptimeNanoseconds == 7_000_000_000)
    #expect(moment.distance(to: moment.advanced(by: .milliseconds(-5))) == .milliseconds(-5))
    #expect(Moment.Stride.seconds(1) == .milliseconds(1000) && Moment.Stride.seconds(0.5) == .microseconds(500_000))
    #expect(Moment.Stride.seconds(.max) + .seconds(.max) == .nanoseconds(.max))
    #expect(Moment.Stride.seconds(.nan) == .seconds(0))
  }
}

/// Something that is set once here and read elsewhere.
private final class Mutable<Value>: @unchecked Sendable {
  // Unchecked: behind the lock.
  private let lock = NSLock()
  private var current: Value

  init(_ value: Value) { current = value }

  var value: Value {
    get { lock.withLock { current } }
    set { lock.withLock { current = newValue } }
  }
}
