package import Foundation
package import KapeControl

/// A small file that is replaced as a whole: readers see the old or the new one, also after a crash or a loss of power.
package struct WholeFile: Sendable {
  package let path: String
  package let sizeLimit: Int

  package init(_ path: String, sizeLimit: Int = 1 << 20) {
    self.path = path
    self.sizeLimit = sizeLimit
  }

  /// nil: it is not there. A file that is another user's (EPERM), a symbolic link (ELOOP), or too large (EFBIG) is not
  /// read.
  package func read() throws(SystemError) -> Data? {
    let raw = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
    if raw < 0 && (errno == ENOENT || errno == ENOTDIR) { return nil }
    guard raw >= 0 else { throw SystemError(path) }
    let file = Descriptor(owning: raw)
    var information = stat()
    guard fstat(file.raw, &information) == 0 else { throw SystemError(path) }
    guard information.st_uid == geteuid() else { throw SystemError(path, code: EPERM) }
    guard information.st_mode & S_IFMT == S_IFREG else { throw SystemError(path, code: EINVAL) }
    guard information.st_size <= sizeLimit else { throw SystemError(path, code: EFBIG) }
    var data = Data(count: Int(information.st_size))
    let size = data.withUnsafeMutableBytes { bytes in
      var size = 0
      while size < bytes.count {
        let count = pread(file.raw, bytes.baseAddress.map { $0 + size }, bytes.count - size, off_t(size))
        if count < 0 && errno == EINTR { continue }
        guard count > 0 else { return count < 0 ? -1 : size }
        size += count
      }
      return size
    }
    guard size >= 0 else { throw SystemError(path) }
    return data.prefix(size)
  }

  /// The data and the name are on the disk when it returns. Its folder has to exist; the file is for its owner (0600).
  package func write(_ data: Data) throws(SystemError) {
    let scratch = "\(path).\(getpid()).\(UInt32.random(in: 0...UInt32.max)).new"
    do throws(SystemError) {
      let raw = open(scratch, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
      guard raw >= 0 else { throw SystemError(scratch) }
      let file = Descriptor(owning: raw)
      try Files.write(Array(data), to: file, scratch)
      guard fchmod(file.raw, 0o600) == 0, fsync(file.raw) == 0, rename(scratch, path) == 0 else {
        throw SystemError(path)
      }
    } catch {
      unlink(scratch)
      throw error
    }
    try synchronizeFolder()
  }

  /// False: it was not there.
  @discardableResult
  package func remove() throws(SystemError) -> Bool {
    guard try Files.remove(path) else { return false }
    try synchronizeFolder()
    return true
  }

  private func synchronizeFolder() throws(SystemError) {
    let folder = (path as NSString).deletingLastPathComponent
    let raw = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard raw >= 0 else { throw SystemError(folder) }
    let descriptor = Descriptor(owning: raw)
    guard fsync(descriptor.raw) == 0 else { throw SystemError(folder) }
  }
}
