import Foundation
import KapeControl
import Synchronization

/// The session of one place (group and service), shared by all processes that use it. A change is made under the lock,
/// from what is there at that moment, and is whole and on the disk before the lock is given back.
package struct SessionStore: Sendable {
  private static let sessionName = "session"
  private static let tokensName = "tokens"

  private let queue: StorageQueue
  private let folder: String
  private let settings: KapeSDKSettings
  private let logger: KapeLogger
  private let order = Order()

  package init(_ queue: StorageQueue, folder: String, settings: KapeSDKSettings, logger: KapeLogger) {
    self.queue = queue
    self.folder = folder
    self.settings = settings
    self.logger = logger
  }

  /// nil: nobody is signed in. What cannot be understood, or belongs to another issuer or client, counts as nobody, is
  /// told to the log, and stays where it is.
  package func session() async throws -> StoredSession? { decode(try await queue.read(Self.sessionName)) }

  package func sessionNow() throws -> StoredSession? { decode(try queue.readNow(Self.sessionName)) }

  /// Runs `body` with nobody else's in between, in this process or another.
  package func exclusively<Result: Sendable>(
    _ body: @Sendable (Transaction) async throws -> Result
  ) async throws -> Result {
    try OwnedFolder.make(folder)
    return try await FileLock(folder + "/.lock").withLock {
      try await body(Transaction(store: self, order: order.next()))
    }
  }

  /// The session, and where in the order of changes of this process it was looked at.
  package func look() async throws -> (session: StoredSession?, order: UInt64) {
    try await exclusively { (try await $0.session(), $0.order) }
  }

  private final class Order: Sendable {
    private let last = Mutex<UInt64>(0)

    func next() -> UInt64 {
      last.withLock { last in
        last += 1
        return last
      }
    }
  }

  /// What may be done under the lock.
  package struct Transaction: Sendable {
    fileprivate let store: SessionStore
    /// Later ones have greater numbers: who is told of two changes out of turn knows which is the last.
    package let order: UInt64

    package func session() async throws -> StoredSession? { try await store.session() }

    package func save(_ session: StoredSession) async throws {
      try await store.queue.write(SessionStore.sessionName, try JSONEncoder().encode(session))
    }

    /// In place of another sign-in, of which nothing stays.
    package func begin(_ session: StoredSession) async throws {
      try await remove()
      try await save(session)
    }

    package func remove() async throws {
      try await store.queue.write(SessionStore.sessionName, Data())
      try await store.queue.write(SessionStore.tokensName, Data())
    }
  }

  /// What was fetched with the session's tokens; empty when it was another session's.
  package func tokens(of session: StoredSession) async throws -> StoredTokens {
    guard let data = try await queue.read(Self.tokensName),
      let tokens = try? JSONDecoder().decode(StoredTokens.self, from: data), tokens.session == session.id
    else { return StoredTokens(session: session.id) }
    return tokens
  }

  /// Nothing is kept when the session has ended meanwhile.
  package func save(_ tokens: StoredTokens) async throws {
    try await exclusively { transaction in
      guard try await transaction.session()?.id == tokens.session else { return }
      try await queue.write(Self.tokensName, try JSONEncoder().encode(tokens))
    }
  }

  /// Runs `body` with nobody else fetching such tokens. It is another lock than the session's, which may be taken inside.
  package func fetchingTokens<Result: Sendable>(
    _ body: @Sendable () async throws -> Result
  ) async throws -> Result {
    try OwnedFolder.make(folder)
    return try await FileLock(folder + "/.tokens.lock").withLock { try await body() }
  }

  private func decode(_ data: Data?) -> StoredSession? {
    guard let data else { return nil }
    guard let session = try? JSONDecoder().decode(StoredSession.self, from: data), session.isKnown else {
      logger.error("the stored session in \(folder) cannot be read, or another version wrote it: sign in again")
      return nil
    }
    guard session.issuer == settings.issuerURL.absoluteString, session.clientId == settings.clientId else {
      logger.error(
        "the stored session in \(folder) is of another issuer or client than the settings': it is not used; give each "
          + "environment a KeychainService of its own")
      return nil
    }
    return session
  }
}
