import Foundation
package import KapeControl

/// Folders that only their owner may look into.
package enum OwnedFolder {
  /// Makes the folder 0700, and those above it. One that is there must be ours and no symbolic link (EPERM, ENOTDIR);
  /// others' rights to it are taken away.
  package static func make(_ path: String) throws(SystemError) {
    try Files.makeFolders(path, mode: 0o700)
    let raw = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
    guard raw >= 0 else { throw SystemError(path) }
    let folder = Descriptor(owning: raw)
    var information = stat()
    guard fstat(folder.raw, &information) == 0 else { throw SystemError(path) }
    guard information.st_uid == geteuid() else { throw SystemError(path, code: EPERM) }
    if information.st_mode & 0o7777 != 0o700 {
      guard fchmod(folder.raw, 0o700) == 0 else { throw SystemError(path) }
    }
  }
}
