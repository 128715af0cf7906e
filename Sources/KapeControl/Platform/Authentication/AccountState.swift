import Combine

/// What is published of who is signed in.
///
/// `@unchecked Sendable`: subjects take values from any thread, and both are set once.
final class AccountState: @unchecked Sendable {
  private let state: CurrentValueSubject<KapeAuthState, Never>
  private let list = CurrentValueSubject<[KapeSubscription]?, Never>(nil)

  init(_ session: StoredSession?) {
    state = CurrentValueSubject(session == nil ? .unauthenticated : .authenticated)
  }

  var authState: AnyPublisher<KapeAuthState, Never> { state.removeDuplicates().eraseToAnyPublisher() }
  var subscriptions: AnyPublisher<[KapeSubscription]?, Never> { list.removeDuplicates().eraseToAnyPublisher() }

  func publish(_ newState: KapeAuthState) { state.send(newState) }
  func publish(_ subscriptions: [KapeSubscription]?) { list.send(subscriptions) }
}
