import Combine
import Testing

@Suite struct ObservableObjectTests {
  class Base: ObservableObject {
    @Published var first = 0
    var plain = 0
  }

  final class Derived: Base {
    @Published var second = ""
  }

  @MainActor final class OnMain: ObservableObject {
    @Published var value = 0
  }

  final class Own: ObservableObject {
    let objectWillChange = PassthroughSubject<String, Never>()
  }

  @Test func tellsBeforeAnyPublishedPropertyChanges() {
    let object = Derived()
    let seen = Log<String>()
    let cancellable = object.objectWillChange.sink { seen.add("\(object.first)\(object.second)") }
    object.first = 1
    object.second = "a"
    object.plain = 5
    object.first = 2
    #expect(seen.all == ["0", "1", "1a"])
    #expect(object.objectWillChange === object.objectWillChange)
    withExtendedLifetime(cancellable) {}
  }

  @Test func tellsBeforeTheSubscribersOfTheProperty() {
    let object = Base()
    let seen = Log<String>()
    let cancellables = [
      object.$first.dropFirst().sink { seen.add("first \($0)") }, object.objectWillChange.sink { seen.add("object") },
    ]
    object.first = 1
    #expect(seen.all == ["object", "first 1"])
    withExtendedLifetime(cancellables) {}
  }

  @Test func tellsOfWhatAPublisherAssigns() {
    let object = Base()
    let seen = Counter()
    let cancellable = object.objectWillChange.sink { seen.increase() }
    Just(3).assign(to: &object.$first)
    #expect(seen.value == 1 && object.first == 3)
    withExtendedLifetime(cancellable) {}
  }

  @Test @MainActor func worksInAClassOfTheMainActor() {
    let object = OnMain()
    let seen = Counter()
    let cancellable = object.objectWillChange.sink { seen.increase() }
    object.value = 1
    #expect(seen.value == 1)
    withExtendedLifetime(cancellable) {}
  }

  @Test func anObjectMayHaveAPublisherOfItsOwn() {
    let object = Own()
    let seen = Log<String>()
    let cancellable = object.objectWillChange.sink(receiveValue: seen.add)
    object.objectWillChange.send("soon")
    #expect(seen.all == ["soon"])
    withExtendedLifetime(cancellable) {}
  }
}
