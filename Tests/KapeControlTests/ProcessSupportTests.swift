import Glibc
import Synchronization
import Testing

@testable import KapeControl

@Suite struct ProcessSupportTests {
  @Test func aHolderIsNamed() {
    let own = SocketHolder(processIdentifier: getpid())
    #expect(own.isAlive)
    #expect(own.description.contains("process \(getpid()) ("))
    // Beyond the largest number of a process (PID_MAX_LIMIT is 2^22).
    #expect(!SocketHolder(processIdentifier: 1 << 23).isAlive)
  }

  @Test func theLockLetsOneInAtATimeAndAllInTheEnd() async {
    let lock = AsyncLock()
    let count = Counters()
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<200 {
        group.addTask {
          await lock.withLock {
            #expect(count.inside.add(1, ordering: .relaxed).newValue == 1)
            await Task.yield()
            count.inside.subtract(1, ordering: .relaxed)
            count.total.add(1, ordering: .relaxed)
          }
        }
      }
    }
    #expect(count.total.load(ordering: .relaxed) == 200)
  }

  @Test func aRemovedFileIsSeenInItsFolder() async throws {
    let reactor = try Reactor()
    let folder = try TemporaryFolder()
    let file = folder.path + "/one.sock"
    close(open(file, O_CREAT | O_WRONLY, 0o600))
    let watch = try #require(FolderWatch(parentOf: file))
    let task = Task { try await watch.changed(reactor) }
    try await Task.sleep(for: .milliseconds(20))
    #expect(unlink(file) == 0)
    try await task.value
  }
}

private final class Counters: Sendable {
  let inside = Atomic(0)
  let total = Atomic(0)
}
