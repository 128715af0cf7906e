import Foundation
import Synchronization
import Testing

@testable import KapePlatform

@Suite("§16: the stored session") struct SessionStoreTests {
  private let folder: ScratchFolder
  private let store: SessionStore
  private let settings: KapeSDKSettings
  private let log = LogRecord()

  init() throws {
    folder = try ScratchFolder()
    settings = try SDKSetup.settings()
    store = SessionStore(
      StorageQueue(FileStorage(folder: folder.path + "/s")), folder: folder.path + "/s", settings: settings,
      logger: log.logger)
  }

  private func session() -> StoredSession {
    StoredSession(
      kind: .account, issuer: settings.issuerURL.absoluteString, clientId: settings.clientId, userId: "u", email: "e")
  }

  @Test(
    "what cannot be understood counts as nobody, is told, and stays",
    arguments: [" ", "{", "{}", "[]", "{\"version\": 2}"])
  func corrupt(_ text: String) async throws {
    try folder.write("s/session", text)
    #expect(try await store.session() == nil)
    #expect(log.lines.contains { $0.contains("sign in again") && $0.contains(folder.path) })
    #expect(FileManager.default.fileExists(atPath: folder.path + "/s/session"))
  }

  @Test("a newer version's file is not taken for ours") func newer() async throws {
    try await store.exclusively { [session = session()] in try await $0.save(session) }
    #expect(try await store.session() != nil)
    let path = folder.path + "/s/session"
    let text = try String(contentsOfFile: path, encoding: .utf8).replacing("\"version\":1", with: "\"version\":2")
    #expect(text.contains("\"version\":2"))
    try folder.write("s/session", text)
    #expect(try await store.session() == nil)
  }

  @Test("tokens of an earlier session are not the next one's, and a fetch that ends late keeps nothing")
  func tokens() async throws {
    let (first, second) = (session(), session())
    try await store.exclusively { try await $0.begin(first) }
    var tokens = try await store.tokens(of: first)
    tokens.connection = StoredTokens.ConnectionToken(text: "t", expiry: .distantFuture, product: ["xv.vpn"])
    try await store.save(tokens)
    #expect(try await store.tokens(of: first).connection?.text == "t")
    try await store.exclusively { try await $0.begin(second) }
    #expect(try await store.tokens(of: second).connection == nil)
    try await store.save(tokens)
    #expect(try await store.tokens(of: first).connection == nil)
    #expect(!FileManager.default.fileExists(atPath: folder.path + "/s/tokens"))
  }

  @Test("later looks have greater numbers") func order() async throws {
    var last: UInt64 = 0
    for _ in 0..<10 {
      let look = try await store.look()
      #expect(look.order > last)
      last = look.order
    }
  }

  @Test("a host's storage is called from one queue, one call at a time") func hostStorage() async throws {
    let most = Most()
    let queue = StorageQueue(CountingStorage(most))
    try await withThrowingTaskGroup { group in
      for index in 0..<50 {
        group.addTask {
          if index % 2 == 0 { try await queue.write("a", Data([1])) } else { _ = try await queue.read("a") }
        }
      }
      for try await _ in group {}
    }
    #expect(try queue.readNow("a") == Data([1]))
    #expect(most.value == 1)
  }
}

private final class Most: Sendable {
  private let state = Mutex(0)
  var value: Int { state.withLock { $0 } }
  func see(_ count: Int) { state.withLock { $0 = max($0, count) } }
}

/// Sees how many calls there are at once, at most.
private final class CountingStorage: StorageCallbackProtocol {
  private let most: Most
  private var inside = 0
  private var data: [String: Data] = [:]

  init(_ most: Most) { self.most = most }

  func storeData(storageId: String, data: Data) throws {
    enter()
    self.data[storageId] = data
    inside -= 1
  }

  func retrieveData(storageId: String) throws -> Data? {
    enter()
    defer { inside -= 1 }
    return data[storageId]
  }

  private func enter() {
    inside += 1
    most.see(inside)
    usleep(100)
  }
}

/// What was logged.
final class LogRecord: Sendable {
  private let state = Mutex<[String]>([])

  var logger: KapeLogger {
    KapeLogger(subsystem: "test", category: "test") { [self] _, line in state.withLock { $0.append(line) } }
  }
  var lines: [String] { state.withLock { $0 } }
}
