import Foundation
import KapeTestSupport
import Testing

/// `kape up`, `down`, `save` and `status` as far as they go without an interface. With one: Tests/Interop/kape-up.
@Suite struct TunnelCommandTests {
  /// A folder for files and state of one test.
  private func inFolder(_ body: (String) throws -> Void) throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("kape-" + UUID().uuidString).path
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    try body(folder)
  }

  private func kape(_ folder: String, _ arguments: String...) throws -> Execution {
    try Execution.kape(arguments, environment: ["KAPE_RUN_DIR": folder + "/run"])
  }

  @Test func everyMistakeInAFileIsToldAndNothingIsMade() throws {
    try inFolder { folder in
      let file = folder + "/wrong.conf"
      try "[Interface]\nPrivateKey = short\nAdress = 10.0.0.1/24\nMTU = many\n".write(
        toFile: file, atomically: true, encoding: .utf8)
      let result = try kape(folder, "up", file)
      #expect(result.status == 2)
      for line in [2, 3, 4] { #expect(result.errors.contains("\(file):\(line): error: "), "\(result.errors)") }
      #expect(result.errors.contains("Address"))
      #expect(!FileManager.default.fileExists(atPath: folder + "/run"))
    }
  }

  @Test(arguments: [
    ("client\ndev tun\nremote 192.0.2.1 1194\n", "not a WireGuard configuration"), ("hello\n", "unknown kind"),
    ("[Interface]\nTable = no-such-table\n", "Table"),
  ])
  func aFileThatIsNoTunnelOfOursIsRefused(_ text: String, _ reason: String) throws {
    try inFolder { folder in
      let file = folder + "/other.conf"
      try text.write(toFile: file, atomically: true, encoding: .utf8)
      let result = try kape(folder, "up", file)
      #expect(result.status == 2)
      #expect(result.errors.contains(reason), "\(result.errors)")
    }
  }

  @Test func aNameThatNoInterfaceCanHaveIsRefused() throws {
    try inFolder { folder in
      let file = folder + "/with blank.conf"
      try "[Interface]\n".write(toFile: file, atomically: true, encoding: .utf8)
      let result = try kape(folder, "up", file)
      #expect(result.status == 2)
      #expect(result.errors.contains("cannot be an interface's name"))
      #expect(try kape(folder, "up", folder + "/absent.conf").status == 2)
    }
  }

  /// It would wait for a writer, and leave a process behind that does.
  @Test func aPipeIsNoFileForTheBackground() throws {
    try inFolder { folder in
      let file = folder + "/kape-pipe.conf"
      #expect(mkfifo(file, 0o600) == 0)
      let result = try kape(folder, "up", file)
      #expect(result.status == 2)
      #expect(result.errors.contains("pipe"), "\(result.errors)")
    }
  }

  @Test func commandLinesThatMakeNoSenseAreUsage() throws {
    for arguments in [
      ["up"], ["up", "-x", "a"], ["up", "a", "b"], ["up", "--keylog"], ["down"], ["down", "a", "b"], ["down", "-f"],
      ["save"], ["save", "-a"], ["status", "a", "b"], ["status", "--xml"],
    ] {
      let result = try Execution.kape(arguments)
      #expect(result.status == 2, "\(arguments)")
      #expect(result.text == "")
      #expect(!result.errors.isEmpty)
    }
  }

  @Test(arguments: [
    (["up", "--foregruond", "a"], "up: unknown option '--foregruond'; did you mean '--foreground'?"),
    (["up", "--keylog=x", "a"], "up: unknown option '--keylog=x'; did you mean '--keylog x'?"),
    (["up", "--keylog"], "up: option '--keylog' needs a value"), (["up", "-x", "a"], "up: unknown option '-x'\n"),
    (["up", "a", "b"], "up: unexpected argument 'b'"), (["up"], "up: an argument is missing"),
    (["up", "-f", ""], "up: an argument is empty"), (["wg", "--foregound", "a"], "did you mean '--foreground'?"),
    (["down", "-f", "a"], "down: unknown option '-f'\n"), (["down"], "down: an argument is missing"),
    (["save", "--all", "a"], "save: unknown option '--all'"), (["status", "--jsno"], "did you mean '--json'?"),
    (["status", "a", "b"], "status: unexpected argument 'b'"), (["check", "--hlep"], "did you mean '--help'?"),
    (["check"], "check: an argument is missing"), (["strip", "a", "-"], "strip: unexpected argument '-'"),
    (["genkey", "x"], "genkey: unexpected argument 'x'"), (["pubkey", "-k"], "pubkey: unknown option '-k'\n"),
    (["genpsk", "-"], "genpsk: unknown option '-'"), (["selftest", "--verbose"], "unknown option '--verbose'\n"),
    (["staus"], "unknown command 'staus'; did you mean 'status'?"),
    (["frobnicate"], "unknown command 'frobnicate'; 'kape"),
  ])
  func whatIsWrongWithACommandLineIsNamed(_ arguments: [String], _ reason: String) throws {
    let result = try Execution.kape(arguments)
    #expect(result.status == 2)
    #expect(result.errors.contains(reason), "\(result.errors)")
    #expect(result.text == "")
  }

  @Test func whatDoesNotRunIsSaid() throws {
    try inFolder { folder in
      for verb in ["down", "save", "status"] {
        let result = try kape(folder, verb, "kape-no-such")
        #expect(result.status == (getuid() == 0 ? 1 : 3), "\(verb)")
        #expect(getuid() != 0 || result.errors.contains("kape-no-such"))
        #expect(result.text == "")
      }
    }
  }

  @Test(arguments: [["status", "--json"], ["check", "-"], ["pubkey"], ["genkey"]])
  func aResultThatCannotBeWrittenIsAFailure(_ arguments: [String]) throws {
    let key = "AKsOlH9cqm9TBCCG0B7mndns9sq6YEaab9NOC52g+kg="
    let input = arguments == ["pubkey"] ? key + "\n" : "[Interface]\nPrivateKey = \(key)\n"
    let result = try Execution.run(
      ["sh", "-c", "exec \"$@\" > /dev/full", "sh", Execution.program] + arguments, input: Array(input.utf8))
    #expect(result.status == 1)
    #expect(result.errors.contains("standard output: No space left on device"), "\(result.errors)")
  }

  /// With standard streams closed, a descriptor of the program's own must not pass for one of them.
  @Test func closedStreamsAreNoDescriptorsOfTheProgram() throws {
    try inFolder { folder in
      let file = folder + "/kape-closed.conf"
      // Fails before anything is made, after it has told what its streams are.
      try "[Interface]\nPreUp = readlink /proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2 > \(folder)/seen; false\n"
        .write(
          toFile: file, atomically: true, encoding: .utf8)
      let result = try Execution.run(
        ["sh", "-c", "exec \"$@\" <&- 2>&- >&-", "sh", Execution.program, "up", "-f", file],
        environment: ["KAPE_RUN_DIR": folder + "/run"])
      #expect(result.status == 1)
      let seen = try String(contentsOfFile: folder + "/seen", encoding: .utf8)
      #expect(seen == "/dev/null\n\(folder)/seen\n/dev/null\n")
    }
  }

  @Test func helpFitsAScreen() throws {
    for verb in ["up", "down", "save", "status"] {
      let result = try Execution.kape([verb, "--help"])
      #expect(result.status == 0)
      #expect(result.text.hasPrefix("usage: kape \(verb)"))
      #expect(result.text.split(separator: "\n", omittingEmptySubsequences: false).count <= 24, "\(verb)")
      #expect(result.text.split(separator: "\n").allSatisfy { $0.count <= 120 })
    }
  }
}
