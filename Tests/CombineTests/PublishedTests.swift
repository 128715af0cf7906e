import Combine
import Testing

@Suite struct PublishedTests {
  final class Model {
    @Published var count = 0
    @Published var name: String

    init(name: String) { self.name = name }
  }

  @MainActor final class MainModel {
    static let shared = MainModel()
    @Published var status: String?
    private(set) var seen: [String?] = []
    private var cancellables: Set<AnyCancellable> = []

    func watch() {
      $status.removeDuplicates().sink { [weak self] in self?.seen.append($0) }.store(in: &cancellables)
    }
  }

  @Test func givesTheValueFirstAndEachNewOneBeforeThePropertyHasIt() {
    let model = Model(name: "a")
    let seen = Log<[Int]>()
    let cancellable = model.$count.sink { seen.add([$0, model.count]) }
    model.count = 1
    #expect(model.count == 1)
    model.count += 1
    #expect(model.count == 2)
    #expect(seen.all == [[0, 0], [1, 0], [2, 1]])
    cancellable.cancel()
    model.count = 3
    #expect(seen.all.count == 3 && model.count == 3)
  }

  @Test func worksForAnInitialValueGivenInTheInitialiser() {
    let model = Model(name: "b")
    let seen = Log<String>()
    let cancellable = model.$name.sink(receiveValue: seen.add)
    model.name = "c"
    #expect(seen.all == ["b", "c"])
    withExtendedLifetime(cancellable) {}
  }

  @Test @MainActor func worksInAClassOfTheMainActor() {
    let model = MainModel.shared
    model.watch()
    model.status = "up"
    model.status = "up"
    model.status = nil
    #expect(model.seen == [nil, "up", nil])
  }

  @Test func anAssignmentWithinASubscriberIsTheOneThatStays() {
    let model = Model(name: "")
    let (first, second) = (Log<Int>(), Log<Int>())
    let cancellables = [
      model.$count.sink { value in
        first.add(value)
        if value > 10 { model.count = 10 }
      },
      model.$count.sink(receiveValue: second.add),
    ]
    model.count = 11
    #expect(model.count == 10 && first.all == [0, 11, 10] && second.all == [0, 11, 10])
    withExtendedLifetime(cancellables) {}
  }

  @Test func oneThatComesWhileOthersAreToldMissesNothing() {
    let model = Model(name: "")
    let seen = Log<Int>()
    var late: AnyCancellable?
    let first = model.$count.sink { value in
      if value == 1, late == nil { late = model.$count.sink(receiveValue: seen.add) }
    }
    model.count = 1
    #expect(seen.all == [0, 1])
    model.count = 2
    #expect(seen.all == [0, 1, 2])
    withExtendedLifetime((first, late)) {}
  }

  @Test func whoAsksLaterGetsTheNewestValue() throws {
    let model = Model(name: "")
    let subscriber = ManualSubscriber<Int>()
    model.$count.subscribe(subscriber)
    model.count = 1
    model.count = 2
    try #require(subscriber.subscription).request(.max(1))
    #expect(subscriber.values == [2])
    model.count = 3
    try #require(subscriber.subscription).request(.max(1))
    #expect(subscriber.values == [2, 3])
  }

  @Test func aPropertyIsFedByAPublisherForAsLongAsItLives() {
    let subject = CurrentValueSubject<Int, Never>(5)
    let ended = Counter()
    let seen = Log<Int>()
    do {
      let model = Model(name: "")
      let source = subject.handled { ended.increase() }
      let cancellable = model.$count.sink { seen.add($0 + model.count) }
      source.assign(to: &model.$count)
      #expect(model.count == 5)
      subject.send(6)
      #expect(model.count == 6)
      #expect(ended.value == 0)
      cancellable.cancel()
    }
    #expect(ended.value == 1)
    #expect(seen.all == [0, 5, 11])
  }

  @Test func aFeedThatEndsLeavesTheLastValue() {
    let model = Model(name: "")
    Just(7).assign(to: &model.$count)
    #expect(model.count == 7)
    model.count = 8
    #expect(model.count == 8)
  }

  @Test func assigningAProjectionMakesTwoPropertiesOne() {
    let (one, other) = (Model(name: "one"), Model(name: "other"))
    other.$name = one.$name
    one.name = "both"
    #expect(other.name == "both")
  }

  @Test func aPropertyOfAnObjectIsAssignedTo() {
    let model = Model(name: "")
    let subject = PassthroughSubject<Int, Never>()
    let cancellable = subject.assign(to: \.count, on: model)
    subject.send(4)
    cancellable.cancel()
    subject.send(5)
    #expect(model.count == 4)
  }
}

extension Publisher {
  /// Tells when the subscription to it is cancelled.
  fileprivate func handled(_ cancelled: @escaping () -> Void) -> some Publisher<Output, Failure> {
    TellsOfCancellation(upstream: self, cancelled: cancelled)
  }
}

private struct TellsOfCancellation<Upstream: Publisher>: Publisher {
  typealias Output = Upstream.Output
  typealias Failure = Upstream.Failure
  let upstream: Upstream
  let cancelled: () -> Void

  func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
    upstream.subscribe(Between(downstream: subscriber, cancelled: cancelled))
  }

  final class Between: Subscriber, Subscription {
    let downstream: any Subscriber<Output, Failure>
    let cancelled: () -> Void
    var upstream: (any Subscription)?

    init(downstream: any Subscriber<Output, Failure>, cancelled: @escaping () -> Void) {
      self.downstream = downstream
      self.cancelled = cancelled
    }

    func receive(subscription: any Subscription) {
      upstream = subscription
      downstream.receive(subscription: self)
    }
    func receive(_ input: Output) -> Subscribers.Demand { downstream.receive(input) }
    func receive(completion: Subscribers.Completion<Failure>) { downstream.receive(completion: completion) }
    func request(_ demand: Subscribers.Demand) { upstream?.request(demand) }
    func cancel() {
      cancelled()
      upstream?.cancel()
    }
  }
}
