import Glibc
import Testing

@testable import KapeControl

@Suite struct StampFileTests {
  @Test func whatIsKeptIsThereForTheNextProcess() throws {
    let folder = try TemporaryFolder()
    let first = StampFile(folder: folder.path + "/stamps", interface: "wg0")
    #expect(first.kept == 0)
    try first.keep(1_764_497_348_007_000_000)
    #expect(StampFile(folder: folder.path + "/stamps", interface: "wg0").kept == 1_764_497_348_007_000_000)
    #expect(StampFile(folder: folder.path + "/stamps", interface: "wg1").kept == 0)
    var information = stat()
    #expect(stat(first.path, &information) == 0 && information.st_mode & 0o777 == 0o600)
    #expect(Files.names(in: folder.path + "/stamps") == ["wg0"])
  }

  @Test func itNeverFallsAndIsNotWrittenWithoutNeed() throws {
    let folder = try TemporaryFolder()
    let file = StampFile(folder: folder.path, interface: "wg0")
    try file.keep(200)
    unlink(file.path)
    try file.keep(200)
    try file.keep(100)
    #expect(!Files.exists(file.path))
    try file.keep(201)
    #expect(StampFile(folder: folder.path, interface: "wg0").kept == 201)
  }

  @Test(arguments: ["", "\n", "-1\n", "nonsense\n", "5 6\n", "18446744073709551615\n", "99999999999999999999\n"])
  func whatMakesNoSenseIsNotBelieved(_ text: String) throws {
    let folder = try TemporaryFolder()
    try Files.write(Array(text.utf8), to: folder.path + "/wg0")
    #expect(StampFile(folder: folder.path, interface: "wg0").kept == 0)
  }

  @Test func aFolderThatCannotBeMadeIsAnError() throws {
    let folder = try TemporaryFolder()
    try Files.write([], to: folder.path + "/file")
    #expect(throws: SystemError.self) { try StampFile(folder: folder.path + "/file", interface: "wg0").keep(1) }
  }

  @Test func aClockBehindTheNewestStampOrOurFilesIsWrong() {
    #expect(ClockCheck.behind([], now: 5) == 0)
    #expect(ClockCheck.behind([5_000_000_000, 9_000_000_000], now: 2_000_000_000) == 7_000_000_000)
    #expect(ClockCheck.behind([3_000_000_000], now: 2_000_000_000) == 0)
    #expect(ClockCheck.behind([3_000_000_000], now: 4_000_000_000) == 0)
    #expect(ClockCheck.changed("/proc/self/exe") > 1_700_000_000_000_000_000)
    #expect(ClockCheck.changed("/nowhere") == 0)
    #expect(ClockCheck.text(90_000_000_000).hasPrefix("the clock is 1 min 30 s behind"))
  }
}
