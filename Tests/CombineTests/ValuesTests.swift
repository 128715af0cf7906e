import Combine
import Testing

@Suite struct ValuesTests {
  @Test func aLoopGetsTheValuesAndEndsWithThem() async {
    var seen: [Int] = []
    for await value in Just(1).values { seen.append(value) }
    #expect(seen == [1])
  }

  @Test func aLoopGetsTheNewestValueHeld() async {
    let subject = CurrentValueSubject<Int, Never>(0)
    var iterator = subject.values.makeAsyncIterator()
    #expect(await iterator.next() == 0)
    subject.send(1)
    subject.send(2)
    #expect(await iterator.next() == 2)
    subject.send(completion: .finished)
    #expect(await iterator.next() == nil)
    #expect(await iterator.next() == nil)
  }

  @Test @MainActor func aLoopOfTheMainActorWaits() async {
    final class Box { var value = 0 }  // not Sendable
    let subject = CurrentValueSubject<Box, Never>(Box())
    let task = Task { @MainActor in
      var sum = 0
      for await box in subject.values {
        sum += box.value
        if box.value == 3 { break }
        let next = Box()
        next.value = box.value + 1
        subject.send(next)
      }
      return sum
    }
    #expect(await task.value == 6)
  }

  @Test func aFailureIsThrownOnce() async {
    let subject = PassthroughSubject<Int, Oops>()
    var iterator = subject.values.makeAsyncIterator()
    subject.send(completion: .failure(Oops()))
    await #expect(throws: Oops.self) { try await iterator.next() }
    #expect(try! await iterator.next() == nil)
  }

  @Test func aCancelledTaskLeavesTheLoop() async {
    let subject = PassthroughSubject<Int, Never>()
    let task = Task {
      var count = 0
      for await _ in subject.values { count += 1 }
      return count
    }
    task.cancel()
    #expect(await task.value == 0)
  }

  @Test func aLoopThatIsLeftHoldsNothing() async {
    final class Kept: Sendable {}
    let subject = CurrentValueSubject<Int, Never>(0)
    weak var released: Kept?
    do {
      let kept = Kept()
      released = kept
      for await _ in subject.map({ [kept] value in withExtendedLifetime(kept) { value } }).values { break }
    }
    #expect(released == nil)
  }
}
