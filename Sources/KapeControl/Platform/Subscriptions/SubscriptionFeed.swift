import Foundation

/// Keeps the list of subscriptions as it is at the backend: fetched at sign-in, after each renewal of the session, when a
/// term ends, and every hour; sooner again after a failure, which changes nothing otherwise. Guests have none, and nobody
/// is asked for them.
actor SubscriptionFeed {
  static let interval = Duration.seconds(3600)
  /// After a failure: this, and twice as long each time, up to the interval.
  static let firstRetry = Duration.seconds(60)

  /// Fetches them; calls its argument when the request leaves, so that a renewal of the session on the way to it does not
  /// ask for a second one.
  typealias Fetch =
    @Sendable (_ session: UUID, _ leaving: @Sendable () async -> Void) async throws -> [KapeSubscription]

  private let clock: any SessionClock
  private let interval: Duration
  private let logger: KapeLogger
  private let account: AccountState
  private let fetch: Fetch
  /// Told of each list that was fetched.
  private let fetched: @Sendable ([KapeSubscription], UUID) async -> Void

  private enum Sight: Equatable {
    case nothing
    case session(UUID?)
  }

  /// The session that was seen last.
  private var seen = Sight.nothing
  private var lastOrder: UInt64 = 0
  /// The account whose subscriptions are followed; nil: nobody's, or a guest's.
  private var followed: UUID?
  private var isFetching = false
  private var isWanted = false
  private var failures = 0
  private var timer: SessionTimer?

  init(
    clock: any SessionClock, interval: Duration = SubscriptionFeed.interval, logger: KapeLogger, account: AccountState,
    fetched: @escaping @Sendable ([KapeSubscription], UUID) async -> Void, fetch: @escaping Fetch
  ) {
    self.clock = clock
    self.interval = interval
    self.logger = logger
    self.account = account
    self.fetched = fetched
    self.fetch = fetch
  }

  deinit { timer?.cancel() }

  /// Who is signed in; nil: nobody. What is known of another goes at once. Looks that arrive out of turn change nothing.
  func apply(_ session: StoredSession?, _ order: UInt64) {
    guard order > lastOrder else { return }
    lastOrder = order
    guard seen != .session(session?.id) else { return }
    seen = .session(session?.id)
    timer?.cancel()
    timer = nil
    failures = 0
    isWanted = false
    followed = session.flatMap { $0.kind == .account ? $0.id : nil }
    account.publish(session?.kind == .guest ? [] : nil)
    account.publish(session == nil ? .unauthenticated : .authenticated)
    if followed != nil { want() }
  }

  /// The session was renewed.
  func renewed(_ id: UUID) {
    if id == followed { want() }
  }

  /// Somebody has fetched them for a purpose of his own.
  func take(_ subscriptions: [KapeSubscription], of id: UUID) {
    guard id == followed else { return }
    failures = 0
    account.publish(subscriptions)
    schedule(after: pause(until: subscriptions))
  }

  private func want() {
    isWanted = true
    guard !isFetching else { return }
    isFetching = true
    Task { await self.fetchUntilNobodyWants() }
  }

  private func satisfy() { isWanted = false }

  private func fetchUntilNobodyWants() async {
    while isWanted, let session = followed {
      isWanted = false
      do {
        let subscriptions = try await fetch(session) { await self.satisfy() }
        // What comes for somebody who has left meanwhile is nobody's.
        guard session == followed else { continue }
        take(subscriptions, of: session)
        await fetched(subscriptions, session)
      } catch {
        logger.warning("subscriptions were not fetched: \(loggable(error))")
        if session == followed { retry(error) }
      }
    }
    isFetching = false
  }

  private func retry(_ error: any Error) {
    var pause = min(Self.firstRetry * Int(1 << min(failures, 10)), interval)
    failures += 1
    if case KapeAuthError.rateLimited(let until) = error {
      pause = max(pause, .seconds(until.timeIntervalSince(clock.wallTime)))
    }
    schedule(after: pause)
  }

  /// To the end of the next term that ends, or the interval.
  private func pause(until subscriptions: [KapeSubscription]) -> Duration {
    let now = clock.wallTime
    let ends = subscriptions.compactMap(\.currentTermEnd).filter { $0 > now }
    guard let next = ends.min() else { return interval }
    return min(interval, .seconds(next.timeIntervalSince(now)))
  }

  private func schedule(after pause: Duration) {
    timer?.cancel()
    timer = clock.schedule(after: pause) { [weak self] in
      Task { await self?.want() }
    }
  }
}
