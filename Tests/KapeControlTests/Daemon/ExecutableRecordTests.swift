import Glibc
import Testing

@testable import KapeControl

@Suite struct ExecutableRecordTests {
  private let folder: TemporaryFolder
  private let path: String

  init() throws {
    folder = try TemporaryFolder()
    path = folder.path + "/provider"
    try Files.write([0x7F] + Array("ELF and more".utf8), to: path, mode: 0o700)
  }

  private func measured(_ path: String? = nil) throws -> ExecutableRecord {
    let path = path ?? self.path
    return try ExecutableRecord(measuring: try ExecutableRecord.open(path), path)
  }

  private func refusal(_ record: ExecutableRecord, _ path: String? = nil) throws -> String {
    do {
      try record.check(try measured(path ?? record.path))
      return "-"
    } catch let refusal as ExecutableRecord.Refusal {
      return refusal.description
    }
  }

  @Test func theSameFileIsTheSameFile() throws {
    let record = try measured()
    #expect(record.size == 13 && record.digest.count == 32)
    #expect(try refusal(record) == "-")
    guard var fields = try? JSONFields(record.json, "it") else { return }
    #expect(try ExecutableRecord(&fields) == record)
  }

  @Test func aSymbolicLinkMayLeadToItButNotElsewhereLater() throws {
    let link = folder.path + "/link"
    try #require(symlink("provider", link) == 0)
    let record = try measured(link)
    #expect(try refusal(record) == "-")
    try Files.write([0x7F] + Array("ELF other".utf8), to: folder.path + "/other", mode: 0o700)
    unlink(link)
    try #require(symlink("other", link) == 0)
    #expect(try refusal(record).contains("another file is there"))
  }

  @Test func anotherFileUnderTheNameIsRefused() throws {
    let record = try measured()
    try Files.write([0x7F] + Array("ELF and more".utf8), to: path + ".new", mode: 0o700)
    try #require(rename(path + ".new", path) == 0)
    #expect(try refusal(record).contains("another file is there"))
  }

  @Test func anotherContentOfTheFileIsRefused() throws {
    let record = try measured()
    let file = Glibc.open(path, O_WRONLY)
    try #require(pwrite(file, "X", 1, 8) == 1)
    close(file)
    // With the old time, as cp --preserve would have it.
    var times = [timespec(), timespec()]
    times[0].tv_sec = 1
    times[1].tv_sec = Int(record.modified / 1_000_000_000)
    times[1].tv_nsec = Int(record.modified % 1_000_000_000)
    try #require(utimensat(AT_FDCWD, path, times, 0) == 0)
    #expect(try refusal(record).contains("its content is another"))
  }

  @Test func aFileThatWasWrittenAnewIsRefused() throws {
    let record = try measured()
    var times = [timespec(), timespec()]
    times[1].tv_sec = 1
    try #require(utimensat(AT_FDCWD, path, times, 0) == 0)
    #expect(try refusal(record).contains("it was written anew"))
    #expect(try refusal(record).contains("install the profile again"))
  }

  @Test func whatIsNoProgramIsRefusedWithAReason() throws {
    func reason(_ path: String) -> String {
      do throws(ExecutableRecord.Refusal) {
        _ = try ExecutableRecord.open(path)
        return "-"
      } catch {
        return error.description
      }
    }
    #expect(reason("provider").contains("no absolute path"))
    #expect(reason(path + "\0x").contains("no absolute path"))
    #expect(reason(path + "x").contains("No such file"))
    #expect(reason(folder.path).contains("is no file"))
    #expect(reason("/dev/zero").contains("is no file"))
    let pipe = folder.path + "/pipe"
    try #require(mkfifo(pipe, 0o700) == 0)
    #expect(reason(pipe).contains("is no file"), "and nobody waits for a writer")
    try Files.write(Array("#!/bin/sh\n".utf8), to: folder.path + "/script", mode: 0o700)
    #expect(reason(folder.path + "/script").contains("no ELF program"))
    try Files.write([0x7F] + Array("ELF".utf8), to: folder.path + "/plain", mode: 0o600)
    #expect(reason(folder.path + "/plain").contains("cannot be executed"))
  }

  @Test func nobodyOpensItForWritingWhileItIsLookedAt() throws {
    let file = try ExecutableRecord.open(path)
    _ = try ExecutableRecord(measuring: file, path)
    // Without waiting for the lease to be given up.
    #expect(Glibc.open(path, O_WRONLY | O_NONBLOCK) == -1 && errno == EWOULDBLOCK)
    #expect(file.raw >= 0, "held until here")
  }

  @Test func aLauncherReadsWhatItIsTold() throws {
    let account = UserAccount(user: 7, group: 8, groups: [8, 9])
    for kind: LaunchRequest.Kind in [
      .measure(path: "/x"),
      .launch(ProviderProfileTests.record, arguments: ["/x", ""], environment: ["A=b c", "D="]),
    ] {
      let request = LaunchRequest(account, kind)
      #expect(try LaunchRequest(request.message) == request)
    }
  }
}

@Suite struct StartedProcessTests {
  @Test func oneIsKnownByItsStart() async throws {
    let own = try #require(StartedProcess(getpid()))
    #expect(own.isRunning)
    #expect(!StartedProcess(getpid(), started: own.started + 1).isRunning, "another of the same number")
    #expect(StartedProcess(0x3FFF_FFFF) == nil)
    // Nothing is done to it.
    try await StartedProcess(getpid(), started: own.started + 1).end()
  }

  @Test func oneThatIgnoresSIGTERMIsEndedAllTheSame() async throws {
    var process = pid_t()
    let script = "trap '' TERM; echo; while :; do sleep 9; done"
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    posix_spawnattr_setflags(&attributes, 0x80)
    let pipe = try Pipe()
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    posix_spawn_file_actions_adddup2(&actions, pipe.writing.raw, STDOUT_FILENO)
    let result = withCStrings(["sh", "-c", script]) {
      posix_spawn(&process, "/bin/sh", &actions, &attributes, $0, environ)
    }
    try #require(result == 0)
    let reading = pipe.endingWriting()
    // Its trap is set.
    try await Reactor().readable(reading.raw)
    let started = try #require(StartedProcess(process))
    try await started.end()
    #expect(!started.isRunning)
    var status: Int32 = 0
    #expect(waitpid(process, &status, 0) == process && status & 0x7F == SIGKILL)
  }
}
