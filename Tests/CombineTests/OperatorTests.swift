import Combine
import Testing

@Suite struct OperatorTests {
  private func values<P: Publisher<T, Never>, T>(
    _ sent: [Int], through operators: (PassthroughSubject<Int, Never>) -> P
  ) -> ([T], ended: Bool) {
    let subject = PassthroughSubject<Int, Never>()
    let seen = Log<T>()
    let ended = Counter()
    let cancellable = operators(subject).sink(receiveCompletion: { _ in ended.increase() }, receiveValue: seen.add)
    for value in sent { subject.send(value) }
    defer { withExtendedLifetime(cancellable) {} }
    return (seen.all, ended.value == 1)
  }

  @Test func valuesAreMappedFilteredAndCompared() {
    #expect(values([1, 2, 3]) { $0.map { "\($0)" } } == (["1", "2", "3"], false))
    #expect(values([1, 2, 3]) { $0.compactMap { $0 == 2 ? nil : -$0 } } == ([-1, -3], false))
    #expect(values([1, 2, 3, 4]) { $0.filter { $0.isMultiple(of: 2) } } == ([2, 4], false))
    #expect(values([1, 1, 2, 1, 1]) { $0.removeDuplicates() } == ([1, 2, 1], false))
    #expect(values([1, 2, 13, 4]) { $0.removeDuplicates { $0 % 10 < $1 % 10 } } == ([1], false))
    #expect(values([-7, 8]) { $0.map(\.magnitude) } == ([7, 8], false))
  }

  @Test func valuesAreCounted() {
    #expect(values([1, 2, 3]) { $0.dropFirst() } == ([2, 3], false))
    #expect(values([1, 2, 3]) { $0.dropFirst(2) } == ([3], false))
    #expect(values([1, 2, 3]) { $0.prefix(2) } == ([1, 2], true))
    #expect(values([1, 2, 3]) { $0.prefix(0) } == ([], true))
    #expect(values([1, 2, 3]) { $0.first() } == ([1], true))
    #expect(values([1, 2, 3]) { $0.first { $0 > 1 } } == ([2], true))
  }

  @Test func eachSubscriptionHasItsOwnMemory() {
    let subject = CurrentValueSubject<Int, Never>(1)
    let publisher = subject.removeDuplicates().dropFirst().eraseToAnyPublisher()
    let (one, other) = (Log<Int>(), Log<Int>())
    let first = publisher.sink(receiveValue: one.add)
    subject.send(2)
    let second = publisher.sink(receiveValue: other.add)
    subject.send(3)
    #expect(one.all == [2, 3] && other.all == [3])
    withExtendedLifetime((first, second)) {}
  }

  @Test func whatIsLeftOutDoesNotCount() throws {
    let subject = PassthroughSubject<Int, Never>()
    let subscriber = ManualSubscriber<Int>()
    subject.filter { $0 > 2 }.map { $0 * 10 }.subscribe(subscriber)
    try #require(subscriber.subscription).request(.max(2))
    for value in 1...6 { subject.send(value) }
    #expect(subscriber.values == [30, 40])
  }

  @Test func failuresAndEndsPassThrough() {
    let seen = Log<String>()
    let failed = Fail<Int, Oops>(error: Oops()).map { $0 + 1 }.filter { _ in true }
      .sink(receiveCompletion: { seen.add("\($0)") }, receiveValue: { seen.add("\($0)") })
    let ended = Just(1).compactMap { $0 }.removeDuplicates()
      .sink(receiveCompletion: { seen.add("\($0)") }, receiveValue: { seen.add("\($0)") })
    #expect(seen.all == ["failure(CombineTests.Oops())", "1", "finished"])
    withExtendedLifetime((failed, ended)) {}
  }

  @Test func anEndAmongTheValuesCancelsTheRest() {
    let subject = PassthroughSubject<Int, Never>()
    let seen = Log<Int>()
    let cancellable = subject.first().sink { value in
      seen.add(value)
      if value < 5 { subject.send(value + 1) }
    }
    subject.send(1)
    #expect(seen.all == [1])
    withExtendedLifetime(cancellable) {}
  }

  @Test func anErasedPublisherIsErasedOnce() {
    let erased = Just(1).eraseToAnyPublisher()
    #expect(MemoryLayout.size(ofValue: erased) == MemoryLayout.size(ofValue: erased.eraseToAnyPublisher()))
    let seen = Log<Int>()
    _ = erased.eraseToAnyPublisher().sink(receiveValue: seen.add)
    #expect(seen.all == [1])
  }

  @Test func demandsAddUpAndNeverFallBelowNone() {
    typealias Demand = Subscribers.Demand
    #expect(Demand.max(2) + .max(3) == .max(5) && Demand.max(2) - .max(3) == .none)
    #expect(Demand.unlimited - .max(3) == .unlimited && Demand.max(3) + .unlimited == .unlimited)
    #expect(Demand.max(.max) + 1 == .unlimited && Demand.max(-4) == .none)
    #expect(Demand.max(3) < .unlimited && !(Demand.unlimited < .max(3)) && !(Demand.unlimited < .unlimited))
    #expect(Demand.max(3) > 2 && Demand.unlimited.max == nil)
  }
}
