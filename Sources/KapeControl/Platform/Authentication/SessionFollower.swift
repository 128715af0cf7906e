import Foundation
import KapeControl
import Synchronization

/// Brings what is published into line with the session: after each change that this process makes, and when another
/// process has changed the file.
final class SessionFollower: Sendable {
  private let store: SessionStore
  private let feed: SubscriptionFeed
  private let folder: String
  private let logger: KapeLogger
  private let watch = Mutex<Task<Void, Never>?>(nil)

  init(_ store: SessionStore, feed: SubscriptionFeed, folder: String, logger: KapeLogger) {
    self.store = store
    self.feed = feed
    self.folder = folder
    self.logger = logger
  }

  deinit { watch.withLock { $0?.cancel() } }

  func start() {
    watch.withLock { watch in
      guard watch == nil else { return }
      watch = Task { [store, feed, folder, logger] in
        await Self.look(store, feed, logger)
        guard let reactor = try? Reactor() else { return }
        let observer = SharedStateObserver(SharedContainer(path: folder), reactor: reactor)
        for await _ in observer.values(of: { _ in try? store.sessionNow()?.id }) {
          await Self.look(store, feed, logger)
        }
      }
    }
  }

  func changed(_ change: SessionChange) async {
    switch change {
    case .began(let session, let order): await feed.apply(session, order)
    case .renewed(let session): await feed.renewed(session.id)
    case .ended(let order): await feed.apply(nil, order)
    }
  }

  private static func look(_ store: SessionStore, _ feed: SubscriptionFeed, _ logger: KapeLogger) async {
    do {
      let (session, order) = try await store.look()
      await feed.apply(session, order)
    } catch {
      logger.error("the session cannot be read: \(loggable(error))")
    }
  }
}

/// Hands on word of changes to somebody who is made later than those who tell.
final class SessionChanges: Sendable {
  private let taker = Mutex<(@Sendable (SessionChange) async -> Void)?>(nil)

  func take(_ changes: @escaping @Sendable (SessionChange) async -> Void) { taker.withLock { $0 = changes } }

  func tell(_ change: SessionChange) async {
    let taker = taker.withLock { $0 }
    await taker?(change)
  }
}
