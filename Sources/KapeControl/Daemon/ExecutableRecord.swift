internal import CLinux
import Glibc
internal import KapeCrypto

/// Which file a provider's executable was when its profile was installed: neither another file under its name nor another
/// content of the same file is taken for it.
package struct ExecutableRecord: Equatable, Sendable {
  /// As it was given; the rest is of the file that it led to.
  package var path: String
  package var device: UInt64
  package var inode: UInt64
  package var size: UInt64
  /// Nanoseconds since 1970.
  package var modified: Int64
  /// SHA-256 of all of it.
  package var digest: [UInt8]

  /// Reading it all must not take long.
  private static let largest: off_t = 1 << 30

  package struct Refusal: Error, Equatable, CustomStringConvertible {
    package var description: String
  }

  package init(path: String, device: UInt64, inode: UInt64, size: UInt64, modified: Int64, digest: [UInt8]) {
    self.path = path
    self.device = device
    self.inode = inode
    self.size = size
    self.modified = modified
    self.digest = digest
  }

  // MARK: Measuring

  /// Opens it with the rights of the effective user, to read and to execute it.
  package static func open(_ path: String) throws(Refusal) -> Descriptor {
    guard path.hasPrefix("/"), path.utf8.count < Int(PATH_MAX), !path.utf8.contains(0) else {
      throw Refusal(description: "'\(path)' is no absolute path")
    }
    // Not waiting, should it be a FIFO or a terminal.
    let raw = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
    guard raw >= 0 else { throw Refusal(description: SystemError(path).description) }
    let file = Descriptor(owning: raw)
    var information = stat()
    guard fstat(raw, &information) == 0, information.st_mode & S_IFMT == S_IFREG else {
      throw Refusal(description: "\(path) is no file")
    }
    guard faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0 else {
      throw Refusal(description: "\(path) cannot be executed by user \(geteuid()): \(SystemError.text(of: errno))")
    }
    guard information.st_size <= largest else {
      throw Refusal(description: "\(path) is larger than \(largest >> 20) MiB")
    }
    var magic = [UInt8](repeating: 0, count: 4)
    guard pread(raw, &magic, 4, 0) == 4, magic == [0x7F] + Array("ELF".utf8) else {
      throw Refusal(
        description: "\(path) is no ELF program; a script's interpreter would read another file than the one checked")
    }
    lease(file)
    return file
  }

  /// Nobody can open the file for writing until the descriptor is closed, or executed, after which its own text protects
  /// it (fcntl(2), "Leases"). Only its owner may do that, and some file systems do not know it.
  private static func lease(_ file: borrowing Descriptor) {
    // Whoever wants to write waits; the word of it is a signal that nobody minds.
    _ = fcntl(file.raw, Int32(CLINUX_F_SETSIG), SIGURG)
    _ = fcntl(file.raw, Int32(CLINUX_F_SETLEASE), F_RDLCK)
  }

  /// Reads all of it.
  package init(measuring file: borrowing Descriptor, _ path: String) throws(Refusal) {
    // As root, for root's own; as the user it was tried when it was opened.
    Self.lease(file)
    let before = try Self.information(file, path)
    let digest = try Self.digest(file, path)
    let after = try Self.information(file, path)
    guard
      before.st_ctim.tv_sec == after.st_ctim.tv_sec, before.st_ctim.tv_nsec == after.st_ctim.tv_nsec,
      before.st_size == after.st_size
    else { throw Refusal(description: "\(path) is being changed") }
    self.init(
      path: path, device: UInt64(after.st_dev), inode: UInt64(after.st_ino), size: UInt64(after.st_size),
      modified: Int64(after.st_mtim.tv_sec) * 1_000_000_000 + Int64(after.st_mtim.tv_nsec), digest: digest)
  }

  private static func information(_ file: borrowing Descriptor, _ path: String) throws(Refusal) -> stat {
    var information = stat()
    guard fstat(file.raw, &information) == 0 else { throw Refusal(description: SystemError(path).description) }
    return information
  }

  private static func digest(_ file: borrowing Descriptor, _ path: String) throws(Refusal) -> [UInt8] {
    var hash = SHA256.Running()
    var buffer = [UInt8](repeating: 0, count: 65_536)
    var offset: off_t = 0
    while true {
      let size = retrying { pread(file.raw, &buffer, buffer.count, offset) }
      guard let size else { throw Refusal(description: SystemError(path).description) }
      if size == 0 { return hash.finish() }
      hash.update(buffer.span.extracting(0..<size).bytes)
      offset += off_t(size)
    }
  }

  /// Throws when `present` is another file or another content.
  package func check(_ present: ExecutableRecord) throws(Refusal) {
    guard present != self else { return }
    let difference =
      present.device != device || present.inode != inode
      ? "another file is there" : present.digest != digest ? "its content is another" : "it was written anew"
    throw Refusal(
      description:
        "\(path) is not what it was when the profile was installed (\(difference)); install the profile again")
  }

  // MARK: JSON

  package var json: JSONValue {
    .object([
      .init("path", .string(path)), .init("device", .unsigned(device)), .init("inode", .unsigned(inode)),
      .init("size", .unsigned(size)),
      .init("modified", modified < 0 ? .negative(modified) : .unsigned(UInt64(modified))),
      .init("sha256", .string(Base64.encode(digest))),
    ])
  }

  package init(_ fields: inout JSONFields) throws(JSONFields.Fault) {
    self.init(
      path: try fields.string("path", limit: Int(PATH_MAX)), device: try fields.unsigned("device"),
      inode: try fields.unsigned("inode"), size: try fields.unsigned("size"), modified: try fields.signed("modified"),
      digest: try fields.data("sha256", limit: SHA256.size) ?? [])
    try fields.end()
  }
}
