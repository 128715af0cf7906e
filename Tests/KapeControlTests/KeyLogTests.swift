import Glibc
import Testing

@testable import KapeControl

@Suite struct KeyLogTests {
  @Test func whatIsNoFileIsRefusedAndLeftAlone() throws {
    let folder = try TemporaryFolder()
    let pipe = folder.path + "/pipe"
    try #require(mkfifo(pipe, 0o644) == 0)
    chmod(pipe, 0o644)
    let reader = open(pipe, O_RDONLY | O_NONBLOCK)
    defer { close(reader) }
    for path in [pipe, folder.path] {
      #expect(throws: SystemError.self) { try KeyLog(path: path) }
    }
    var information = stat()
    #expect(stat(pipe, &information) == 0)
    #expect(information.st_mode & 0o777 == 0o644)
  }

  @Test func aPipeThatNobodyReadsIsNotWaitedFor() throws {
    let folder = try TemporaryFolder()
    try #require(mkfifo(folder.path + "/pipe", 0o644) == 0)
    #expect(throws: SystemError.self) { try KeyLog(path: folder.path + "/pipe") }
  }

  @Test func aFileThatWasThereLosesItsReaders() throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/keys"
    close(open(path, O_CREAT | O_WRONLY, 0o644))
    _ = try KeyLog(path: path)
    var information = stat()
    #expect(stat(path, &information) == 0)
    #expect(information.st_mode & 0o777 == 0o600)
  }
}
