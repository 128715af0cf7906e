/// One connection to kaped: what it has asked and what it wants to be told of, within limits.
actor DaemonClient {
  /// Requests at once.
  private static let mostRequests = 16
  private static let mostWatches = 64

  nonisolated let connection: IPCConnection
  private var requests = 0
  private var watches: [(session: ProviderSession, watcher: UInt64, task: Task<Void, Never>)] = []

  init(_ connection: IPCConnection) { self.connection = connection }

  /// False: too many.
  func begin() -> Bool {
    guard requests < Self.mostRequests else { return false }
    requests += 1
    return true
  }

  func finish() { requests -= 1 }

  /// What is now and each change from now on, in their order; of what comes faster than it is read, the newest.
  func watch(_ session: ProviderSession) async throws {
    guard watches.count < Self.mostWatches else {
      throw IPCFailure(.refused, "too much is watched on one connection")
    }
    let (stream, continuation) = AsyncStream.makeStream(
      of: ProviderSnapshot.self, bufferingPolicy: .bufferingNewest(16))
    let connection = connection
    let task = Task {
      for await snapshot in stream {
        do { try await connection.tell("status", [.init("status", snapshot.json)]) } catch { return }
      }
    }
    watches.append((session, await session.watch { continuation.yield($0) }, task))
  }

  func end() async {
    for (session, watcher, task) in watches {
      await session.forget(watcher)
      task.cancel()
    }
    watches = []
  }
}
