internal import CLinux
import Glibc

/// Tells when something in a folder was removed, replaced or renamed.
package final class FolderWatch: Sendable {
  private let descriptor: Descriptor

  /// Of the folder that `path` is in; nil when inotify is not to be had.
  package convenience init?(parentOf path: String) {
    self.init(path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? ".")
  }

  /// nil when inotify is not to be had, or the folder is not there.
  package init?(_ folder: String) {
    let raw = inotify_init1(Int32(IN_CLOEXEC | IN_NONBLOCK))
    guard raw >= 0 else { return nil }
    descriptor = Descriptor(owning: raw)
    let changes = UInt32(IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF)
    guard inotify_add_watch(raw, folder, changes) >= 0 else { return nil }
  }

  package func changed(_ reactor: Reactor) async throws {
    try await reactor.readable(descriptor.raw)
    withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 8) { buffer in
      while let size = retrying({ read(descriptor.raw, buffer.baseAddress, buffer.count) }), size > 0 {}
    }
  }
}
