import Glibc

@testable import KapeControl

/// A folder of a test's own, removed with everything in it.
final class TemporaryFolder: Sendable {
  let path: String

  init() throws {
    let template = (getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp") + "/kape-test.XXXXXX"
    var bytes = Array(template.utf8CString)
    guard let made = mkdtemp(&bytes) else { throw Failure() }
    path = String(cString: made)
  }

  struct Failure: Error {}

  deinit { Self.removeAll(path) }

  private static func removeAll(_ folder: String) {
    for name in Files.names(in: folder) where unlink(folder + "/" + name) != 0 { removeAll(folder + "/" + name) }
    rmdir(folder)
  }
}
