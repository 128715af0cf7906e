import Foundation
import KapeControl
import KapePlatform
import Testing

@Suite("§16: files that are replaced as a whole") struct WholeFileTests {
  private let folder: ScratchFolder
  private let file: WholeFile

  init() throws {
    folder = try ScratchFolder()
    file = WholeFile(folder.path + "/file")
  }

  @Test("what is written is read, for its owner alone, with nothing left beside it; what is removed is not there")
  func round() throws {
    #expect(try file.read() == nil)
    #expect(try !file.remove())
    for size in [0, 1, 70_000] {
      let data = Data((0..<size).map { UInt8(truncatingIfNeeded: $0) })
      try file.write(data)
      #expect(try file.read() == data)
      #expect(try folder.mode("file") == 0o600)
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["file"])
    #expect(try file.remove())
    #expect(try file.read() == nil)
  }

  @Test("a file that others may read does not stay so") func mode() throws {
    try folder.write("file", "old")
    chmod(file.path, 0o644)
    try file.write(Data("new".utf8))
    #expect(try folder.mode("file") == 0o600)
  }

  @Test("a link, a pipe, a folder and a file that is too large are not read") func refused() throws {
    try folder.write("target", "secret")
    symlink(folder.path + "/target", folder.path + "/link")
    mkfifo(folder.path + "/pipe", 0o600)
    try folder.write("large", Data(count: 11))
    for (name, code) in [("link", ELOOP), ("pipe", EINVAL), ("large", EFBIG)] {
      #expect(throws: SystemError(folder.path + "/" + name, code: code)) {
        try WholeFile(folder.path + "/" + name, sizeLimit: 10).read()
      }
    }
    #expect(throws: (any Error).self) { try WholeFile(folder.path).read() }
  }

  @Test("another user's file is not read, and another's folder is not used", .enabled(if: geteuid() == 0))
  func others() throws {
    try folder.write("file", "x")
    chown(file.path, 65534, 65534)
    #expect(throws: SystemError(file.path, code: EPERM)) { try file.read() }
    try FileManager.default.createDirectory(atPath: folder.path + "/theirs", withIntermediateDirectories: true)
    chown(folder.path + "/theirs", 65534, 65534)
    #expect(throws: SystemError(folder.path + "/theirs", code: EPERM)) { try OwnedFolder.make(folder.path + "/theirs") }
  }

  @Test("a write that fails changes nothing and leaves nothing") func failure() throws {
    try file.write(Data("old".utf8))
    let target = WholeFile(folder.path + "/nowhere/file")
    #expect(throws: (any Error).self) { try target.write(Data()) }
    try FileManager.default.createDirectory(atPath: folder.path + "/taken/full", withIntermediateDirectories: true)
    #expect(throws: (any Error).self) { try WholeFile(folder.path + "/taken").write(Data("new".utf8)) }
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() == ["file", "taken"])
    #expect(try file.read() == Data("old".utf8))
  }
}

@Suite("§16: the lock of a session") struct FileLockTests {
  private let folder: ScratchFolder

  init() throws { folder = try ScratchFolder() }

  @Test("one holder at a time, and everybody gets it") func exclusion() async throws {
    let lock = FileLock(folder.path + "/lock")
    let inside = Box(0)
    try await withThrowingTaskGroup { group in
      for _ in 0..<30 {
        group.addTask {
          try await lock.withLock {
            let before = inside.value ?? 0
            await Task.yield()
            inside.value = before + 1
          }
        }
      }
      for try await _ in group {}
    }
    #expect(inside.value == 30)
  }

  @Test("who waits can be cancelled, and gives up after his patience") func waiting() async throws {
    let path = folder.path + "/lock"
    try await FileLock(path).withLock {
      let waiting = Task { try await FileLock(path).withLock {} }
      waiting.cancel()
      await #expect(throws: CancellationError.self) { try await waiting.value }
      await #expect(throws: SystemError(path, code: ETIMEDOUT)) {
        try await FileLock(path, patience: .milliseconds(5)).withLock {}
      }
    }
    try await FileLock(path, patience: .zero).withLock {}
  }

  @Test("an error in the body gives the lock back") func failure() async throws {
    struct Failure: Error {}
    let lock = FileLock(folder.path + "/lock", patience: .zero)
    await #expect(throws: Failure.self) { try await lock.withLock { throw Failure() } }
    try await lock.withLock {}
  }
}
