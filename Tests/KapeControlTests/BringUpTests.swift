import Glibc
import KapeCrypto
import KapeProtocols
import Synchronization
import Testing

@testable import KapeControl

@Suite struct HookTests {
  @Test(arguments: [
    ("echo %i", "echo wg0"), ("%i%i %%i %d %", "wg0wg0 %wg0 %d %"), ("", ""), ("plain", "plain"),
  ])
  func theInterfaceTakesThePlaceOfItsMark(_ command: String, _ expected: String) {
    #expect(Hooks(interface: "wg0").expand(command) == expected)
  }

  @Test func theFirstFailureEndsCommandsOnTheWayUp() async throws {
    let said = Mutex("")
    let hooks = Hooks(interface: "wg0")
    await #expect(throws: Hooks.Failure.self) {
      try await hooks.run(
        ["echo one", "false; echo not this", "echo nor this"], .sink { text in said.withLock { $0 += text } })
    }
    #expect(said.withLock { $0 } == "one\n")
  }

  @Test func everyCommandIsRunOnTheWayDown() async {
    let said = Mutex("")
    let failures = await Hooks(interface: "wg0").runAll(
      ["exit 3", "echo %i", "kill -9 $$"], .lines { text in said.withLock { $0 += text } })
    #expect(said.withLock { $0 } == "wg0\n")
    #expect(failures == ["'exit 3' failed: exit status 3", "'kill -9 $$' failed: ended by signal 9"])
  }
}

@Suite struct SubprocessTests {
  @Test func inputIsGivenAndOutputTaken() async throws {
    let said = Mutex("")
    let outcome = try await Subprocess("/bin/cat", ["-"], input: "nameserver 192.0.2.1\n").run(
      .sink { text in said.withLock { $0 += text } })
    #expect(outcome.isSuccess)
    #expect(said.withLock { $0 } == "nameserver 192.0.2.1\n")
  }

  @Test func nothingOfOursButTheStandardStreamsIsInherited() async throws {
    let leaked = open("/dev/null", O_RDONLY | O_CLOEXEC)
    defer { close(leaked) }
    let said = Mutex("")
    _ = try await Subprocess("/bin/ls", ["/proc/self/fd"]).run(.sink { text in said.withLock { $0 += text } })
    // The last is ls's own, of the folder.
    #expect(said.withLock { $0 } == "0\n1\n2\n3\n")
  }

  @Test func aProgramThatHangsIsEndedAtItsDeadline() async throws {
    let start = monotonicNow()
    let outcome = try await Subprocess("/bin/sleep", ["100"]).run(within: .seconds(1))
    #expect(outcome == Subprocess.Outcome(status: nil, signal: SIGTERM))
    #expect(monotonicNow() - start < 20_000_000_000)
  }

  @Test func oneThatDoesNotListenToSIGTERMIsKilled() async throws {
    let outcome = try await Subprocess("/bin/sh", ["-c", "trap '' TERM; while :; do sleep 1; done"]).run(
      within: .seconds(1))
    #expect(outcome.signal == SIGKILL)
  }

  @Test func aTaskThatIsCancelledEndsItsProgram() async throws {
    let task = Task { try await Subprocess("/bin/sleep", ["100"]).run() }
    task.cancel()
    let outcome = try await task.value
    #expect(outcome.signal == SIGTERM)
  }

  @Test func whatIsLeftBehindIsNotWaitedFor() async throws {
    let start = monotonicNow()
    let outcome = try await Subprocess("/bin/sh", ["-c", "sleep 60 & echo done"]).run(.sink { _ in })
    #expect(outcome.isSuccess)
    #expect(monotonicNow() - start < 50_000_000_000)
  }

  @Test func aProgramThatIsNotThereIsAnError() async {
    await #expect(throws: SystemError.self) { try await Subprocess("/nonexistent/program", []).run() }
  }
}

@Suite struct RunDirectoryTests {
  // The folder is taken from the environment, which is the process's: one test at a time.
  @Test func aNameHasOneHolder() throws {
    let folder = try TemporaryFolder()
    setenv("KAPE_RUN_DIR", folder.path + "/a/b", 1)
    defer { unsetenv("KAPE_RUN_DIR") }
    #expect(RunDirectory.holder(of: "wg0") == nil)
    var held: RunDirectory? = try RunDirectory("wg0")
    #expect(RunDirectory.holder(of: "wg0") == getpid())
    #expect(RunDirectory.names().isEmpty, "without a journal it is nothing")
    try Files.write([], to: RunDirectory.journal(of: "wg0"))
    #expect(RunDirectory.names() == ["wg0"])
    do {
      _ = try RunDirectory("wg0")
      Issue.record("two have it")
    } catch {
      guard case .held(let process) = error else { throw error }
      #expect(process == getpid())
    }
    var information = stat()
    stat(RunDirectory.path(of: "wg0"), &information)
    #expect(information.st_mode & 0o777 == 0o700)
    // What is left by one that was killed is free to take.
    held = nil
    #expect(RunDirectory.holder(of: "wg0") == nil)
    held = try RunDirectory("wg0")
    held?.remove()
    held = nil
    #expect(!Files.exists(RunDirectory.path(of: "wg0")))
  }
}

@Suite struct NameTests {
  @Test(
    arguments: [
      (nil, "wg0"), ("lo.*\neth*\ntun*\n", "eth.wg0"), ("lo\n# tun*\ntun*\n", "tun.wg0"), ("*\n", "wg0"),
    ] as [(String?, String)])
  func anEntryTakesItsPlaceInTheOrderOfInterfaces(_ order: String?, _ expected: String) {
    #expect(NameServices.entry("wg0", order: order) == expected)
  }

  @Test func tablesHaveNames() {
    let text = "#\n255\tlocal\n254 main\n0x64 hundred\n#7 seven\n200 with # remark\nnonsense x\n"
    #expect(RoutingTables.number(of: "hundred", in: text) == 100)
    #expect(RoutingTables.number(of: "with", in: text) == 200)
    #expect(RoutingTables.number(of: "seven", in: text) == nil)
    #expect(RoutingTables.number(of: "x", in: text) == nil)
    #expect(RoutingTables.resolve(.name("main")) == .number(254))
    #expect(RoutingTables.resolve(.off) == .off)
  }

  @Test func aFileForgottenOverARestartComesBack() throws {
    let folder = try TemporaryFolder()
    let file = folder.path + "/resolv.conf"
    #expect(try !Recovery.restoreForgottenFile("wg0", file: file))
    try Files.write(Array("nameserver 192.0.2.1\n".utf8), to: file)
    let backup = ResolverFileBackup(file, interface: "wg0", folder: folder.path)
    try backup.replace(with: ResolverFile.write(.init(search: ["a.example"]), over: "", interface: "wg0"))
    #expect(try !Recovery.restoreForgottenFile("wg1", file: file))
    #expect(try Recovery.restoreForgottenFile("wg0", file: file))
    #expect(try Files.text(file) == "nameserver 192.0.2.1\n")
    #expect(Files.names(in: folder.path) == ["resolv.conf"])
    // Someone wrote another since: that one stays.
    try backup.replace(with: "nameserver 192.0.2.7\n")
    #expect(try !Recovery.restoreForgottenFile("wg0", file: file))
    #expect(try Files.text(file) == "nameserver 192.0.2.7\n")
    #expect(Files.names(in: folder.path) == ["resolv.conf"])
  }
}

@Suite struct RecoveryTests {
  @Test func onlyWhatIsOfThisMachinesPresentAndThisNamespaceIsUndone() {
    let now = PutBack.currentOrigin(configuration: "/etc/wireguard/wg0.conf")
    #expect(PutBack.standing(of: now) == .here)
    #expect(PutBack.standing(of: nil) == .here)
    var other = now
    other.namespace = "net:[1]"
    #expect(PutBack.standing(of: other) == .elsewhere("net:[1]"))
    other.boot = "another"
    #expect(PutBack.standing(of: other) == .beforeRestart)
  }
}

@Suite struct ControlTests {
  @Test func aRequestIsAnsweredOverAPathOfAnyLength() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/" + String(repeating: "long", count: 50)
    mkdir(path, 0o700)
    let reactor = try Reactor()
    let socket = try ControlSocket(path + "/control.sock")
    let server = Task {
      try await socket.run(reactor) { request, client in
        client.out("\(request)\nsecond line")
        client.error("a warning")
        client.raw("raw\n")
        client.finish(3)
      }
    }
    let lines = Mutex<[String]>([])
    let code = try await onThread { () throws(ControlConnection.Failure) in
      try ControlConnection.ask(
        path: path + "/control.sock", .save, out: { line in lines.withLock { $0.append("out " + line) } },
        error: { line in lines.withLock { $0.append("error " + line) } },
        raw: { line in lines.withLock { $0.append("raw " + line) } })
    }
    #expect(code == 3)
    #expect(lines.withLock { $0 } == ["out save", "out second line", "error a warning", "raw raw"])
    server.cancel()
    _ = await server.result
    await #expect(throws: ControlConnection.Failure.self) {
      try await onThread { () throws(ControlConnection.Failure) in
        try ControlConnection.ask(path: path + "/absent.sock", .down, out: { _ in }, error: { _ in })
      }
    }
  }

  @Test func nonsenseIsNotAnswered() async throws {
    let folder = try TemporaryFolder()
    let reactor = try Reactor()
    let socket = try ControlSocket(folder.path + "/control.sock")
    let server = Task { try await socket.run(reactor) { _, _ in Issue.record("it was answered") } }
    let client = try UnixSocket.connect(folder.path + "/control.sock")
    #expect(send(client.raw, "reboot\n", 7, Int32(MSG_NOSIGNAL)) == 7)
    try await reactor.readable(client.raw, within: .seconds(60))
    var byte: UInt8 = 0
    #expect(recv(client.raw, &byte, 1, 0) == 0)
    server.cancel()
    _ = await server.result
  }
}

@Suite struct TunnelSessionTests {
  @Test func onlyAMissingCapabilityIsAMatterOfPrivilege() {
    let disabled = NetlinkError("add address fd77::1/64", code: EACCES, text: "ipv6: IPv6 is disabled on this device")
    #expect(TunnelSession.failure(disabled) == .failed(disabled.description))
    guard case .missing(let text) = TunnelSession.failure(NetlinkError("add address 10.77.0.1/24", code: EPERM)) else {
      Issue.record("EPERM is a matter of privilege")
      return
    }
    #expect(text.contains("CAP_NET_ADMIN"))
  }

  @Test func savingReplacesTheFileBehindALink() throws {
    let folder = try TemporaryFolder()
    let (file, link) = (folder.path + "/file", folder.path + "/wg0.conf")
    try Files.write(Array("before".utf8), to: file)
    #expect(symlink("file", link) == 0)
    var text = SecretBuffer(capacity: 8)
    text.append("after")
    try TunnelSession.replace(link, text)
    #expect(Files.link(link) == "file")
    #expect(try Files.text(file) == "after")
    #expect(Files.names(in: folder.path) == ["file", "wg0.conf"])
  }
}
