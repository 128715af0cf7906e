import Glibc

/// Small files of text, as a whole.
package enum Files {
  /// nil: it is not there. At most `limit` bytes are read.
  package static func read(_ path: String, limit: Int = 1 << 20) throws(SystemError) -> [UInt8]? {
    let raw = open(path, O_RDONLY | O_CLOEXEC)
    if raw < 0 && (errno == ENOENT || errno == ENOTDIR) { return nil }
    guard raw >= 0 else { throw SystemError(path) }
    let file = Descriptor(owning: raw)
    var bytes: [UInt8] = []
    var failed = false
    withUnsafeTemporaryAllocation(byteCount: 16384, alignment: 1) { buffer in
      while bytes.count < limit {
        guard let size = retrying({ Glibc.read(file.raw, buffer.baseAddress, buffer.count) }) else {
          failed = true
          return
        }
        if size == 0 { return }
        bytes.append(contentsOf: buffer[..<min(size, limit - bytes.count)])
      }
    }
    if failed { throw SystemError(path) }
    return bytes
  }

  /// The same as text; what is not UTF-8 is replaced.
  package static func text(_ path: String) throws(SystemError) -> String? {
    try read(path).map { String(decoding: $0, as: UTF8.self) }
  }

  /// Makes or empties the file and writes it.
  package static func write(_ bytes: [UInt8], to path: String, mode: mode_t = 0o600) throws(SystemError) {
    let raw = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode)
    guard raw >= 0 else { throw SystemError(path) }
    let file = Descriptor(owning: raw)
    try write(bytes, to: file, path)
  }

  package static func write(_ bytes: [UInt8], to file: borrowing Descriptor, _ path: String) throws(SystemError) {
    let raw = file.raw
    let complete = bytes.withUnsafeBytes { bytes in
      var rest = bytes[...]
      while !rest.isEmpty {
        let part = UnsafeRawBufferPointer(rebasing: rest)
        guard let size = retrying({ Glibc.write(raw, part.baseAddress, part.count) }) else { return false }
        rest = rest.dropFirst(size)
      }
      return true
    }
    guard complete else { throw SystemError(path) }
  }

  /// Makes a folder with those above it (0755).
  package static func makeFolders(_ path: String, mode: mode_t) throws(SystemError) {
    if mkdir(path, mode) == 0 || errno == EEXIST { return }
    guard errno == ENOENT, let slash = path.lastIndex(of: "/"), slash != path.startIndex else {
      throw SystemError(path)
    }
    try makeFolders(String(path[..<slash]), mode: 0o755)
    guard mkdir(path, mode) == 0 || errno == EEXIST else { throw SystemError(path) }
  }

  package static func exists(_ path: String) -> Bool {
    var information = stat()
    return lstat(path, &information) == 0
  }

  /// False: it was not there.
  @discardableResult
  package static func remove(_ path: String) throws(SystemError) -> Bool {
    if unlink(path) == 0 { return true }
    guard errno == ENOENT else { throw SystemError(path) }
    return false
  }

  /// Names in a folder, without "." and ".."; none when it cannot be read.
  package static func names(in folder: String) -> [String] {
    guard let handle = opendir(folder) else { return [] }
    defer { closedir(handle) }
    var names: [String] = []
    while let entry = readdir(handle) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      if name != "." && name != ".." { names.append(name) }
    }
    return names.sorted()
  }

  /// What a symbolic link says; nil when it is none.
  package static func link(_ path: String) -> String? {
    withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 1) { buffer in
      guard let start = buffer.baseAddress?.assumingMemoryBound(to: CChar.self) else { return nil }
      let size = readlink(path, start, buffer.count)
      return size < 0 ? nil : String(decoding: buffer[..<size], as: UTF8.self)
    }
  }
}
