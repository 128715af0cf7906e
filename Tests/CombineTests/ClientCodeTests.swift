import Combine
import Foundation
import Testing

// Code as apps write it: the same file is built in both language modes.

@MainActor private final class TunnelState {
  static let shared = TunnelState()
  @Published var endpoint: String?
  @Published var status: Int?
}

@MainActor private final class ViewModel: ObservableObject {
  @Published private(set) var title = ""
  @Published var isBusy = false
  private var cancellables = Set<AnyCancellable>()
  private let signedIn = CurrentValueSubject<Bool, Never>(false)

  var authState: AnyPublisher<Bool, Never> { signedIn.removeDuplicates().eraseToAnyPublisher() }

  init(state: TunnelState) {
    state.$status
      .removeDuplicates()
      .receive(on: DispatchQueue.main)
      .sink { [weak self] status in
        self?.title = status.map { "status \($0)" } ?? "none"
      }
      .store(in: &cancellables)
    state.$endpoint
      .compactMap { $0 }
      .receive(on: DispatchQueue.main)
      .map { !$0.isEmpty }
      .assign(to: &$isBusy)
  }

  func signIn() { signedIn.send(true) }
}

private actor Watcher {
  private var cancellable: AnyCancellable?
  private(set) var seen = 0

  func watch(_ publisher: AnyPublisher<Int, Never>) {
    cancellable = publisher.sink { [weak self] value in
      Task { await self?.saw(value) }
    }
  }

  func stop() { cancellable = nil }

  private func saw(_ value: Int) { seen = max(seen, value) }
}

private final class Listener: @unchecked Sendable {
  private let queue = DispatchQueue(label: "listener")
  private var token: AnyCancellable?

  init(stop: @escaping () -> Void) {
    token = AnyCancellable(stop)
  }

  func end() { queue.sync { token = nil } }
}

@Suite struct ClientCodeTests {
  @Test @MainActor func aViewModelFollowsTheStateOfATunnel() async {
    let state = TunnelState.shared
    let model = ViewModel(state: state)
    let changes = model.objectWillChange.sink {}
    var titles = model.$title.values.makeAsyncIterator()
    state.status = 1
    while await titles.next() != "status 1" {}
    state.endpoint = "192.0.2.1"
    for await busy in model.$isBusy.values where busy { break }
    #expect(model.isBusy)
    var states: [Bool] = []
    let watching = model.authState.sink { states.append($0) }
    model.signIn()
    #expect(states == [false, true])
    withExtendedLifetime((changes, watching)) {}
  }

  @Test func anActorKeepsItsSubscription() async {
    let subject = CurrentValueSubject<Int, Never>(0)
    let watcher = Watcher()
    await watcher.watch(subject.eraseToAnyPublisher())
    subject.send(5)
    while await watcher.seen != 5 { await Task.yield() }
    await watcher.stop()
    #expect(await watcher.seen == 5)
  }

  @Test func aClosureThatIsNotSendableCancels() {
    var stopped = 0
    let listener = Listener { stopped += 1 }
    listener.end()
    #expect(stopped == 1)
  }
}
