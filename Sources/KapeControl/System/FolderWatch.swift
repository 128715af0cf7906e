internal import CLinux
import Glibc

/// Tells when something in a folder was removed, replaced or renamed.
final class FolderWatch: Sendable {
  private let descriptor: Descriptor

  /// nil when inotify is not to be had.
  init?(parentOf path: String) {
    let raw = inotify_init1(Int32(IN_CLOEXEC | IN_NONBLOCK))
    guard raw >= 0 else { return nil }
    descriptor = Descriptor(owning: raw)
    let parent = path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
    let changes = UInt32(IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF)
    guard inotify_add_watch(raw, parent, changes) >= 0 else { return nil }
  }

  func changed(_ reactor: Reactor) async throws {
    try await reactor.readable(descriptor.raw)
    withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 8) { buffer in
      while let size = retrying({ read(descriptor.raw, buffer.baseAddress, buffer.count) }), size > 0 {}
    }
  }
}
