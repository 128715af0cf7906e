internal import CLinux
import Glibc

/// How /etc/resolv.conf is replaced, and what brings the old one back: the same file, link or bytes. Where the folder
/// allows it the old file is kept beside the new one under a hidden name and both changes are one rename(2), so that no
/// reader ever sees half a file, and the old one is there still after a restart of the machine. A file that is a mount
/// of its own (a container's, that of `ip netns exec`) is written in place.
package struct ResolverFileBackup: Equatable, Sendable {
  package enum Way: Equatable, Sendable {
    /// The old file is kept under this path.
    case beside(String)
    /// It was a symbolic link with this text.
    case link(String)
    /// There was none.
    case absent
    /// It is written in place; this is a copy of what it held.
    case copied(String)

    /// Where the old one is kept, if it is a file.
    package var kept: String? {
      switch self {
      case .beside(let path), .copied(let path): path
      case .link, .absent: nil
      }
    }
  }

  package var path: String
  package var way: Way

  package init(path: String, way: Way) {
    self.path = path
    self.way = way
  }

  /// Decides, without changing anything. `folder` is where a copy may go.
  package init(_ path: String, interface: String, folder: String) {
    let target = resolvedPath(path)
    let parent = Self.parent(of: path)
    let copy = Way.copied(folder + "/resolv.conf.before")
    if MountPoints.contains(target) || access(parent, W_OK) != 0 {
      self.init(path: target, way: copy)
    } else if let text = Files.link(path) {
      self.init(path: path, way: .link(text))
    } else if !Files.exists(path) {
      self.init(path: path, way: .absent)
    } else {
      self = .beside(path, interface: interface)
    }
  }

  static let keptPrefix = ".resolv.conf.before-kape-"

  static func beside(_ path: String, interface: String) -> ResolverFileBackup {
    ResolverFileBackup(path: path, way: .beside(parent(of: path) + "/" + keptPrefix + interface))
  }

  private static func parent(of path: String) -> String {
    let end = path.lastIndex(of: "/") ?? path.startIndex
    return end == path.startIndex ? "/" : String(path[..<end])
  }

  private var scratch: String { Self.parent(of: path) + "/.resolv.conf.new-kape" }

  // MARK: There

  /// Keeps what is there and puts `text` in its place. To be written down before.
  package func replace(with text: String) throws(SystemError) {
    switch way {
    case .copied(let copy):
      if try Files.read(copy) == nil {
        // Whole or not at all, so that a copy that exists can be trusted.
        try Files.write(Files.read(path) ?? [], to: copy + ".part")
        guard rename(copy + ".part", copy) == 0 else { throw SystemError(copy) }
      }
      try Self.overwrite(path, Array(text.utf8))
    case .beside(let kept):
      guard linkFile(path, kept) == 0 || errno == EEXIST else { throw SystemError(kept) }
      try renameOver(text)
    case .link, .absent:
      try renameOver(text)
    }
  }

  private func renameOver(_ text: String) throws(SystemError) {
    try Files.remove(scratch)
    try Files.write(Array(text.utf8), to: scratch, mode: 0o644)
    guard chmod(scratch, 0o644) == 0, rename(scratch, path) == 0 else { throw SystemError(path) }
  }

  // MARK: Back

  /// Brings back what was there; nothing happens when it is there already.
  package func restore() throws(SystemError) {
    switch way {
    case .copied(let copy):
      guard let bytes = try Files.read(copy) else { return }
      // Where it could not be written in the first place, it cannot be now, and need not be.
      if try Files.read(path) ?? [] != bytes { try Self.overwrite(path, bytes) }
      try Files.remove(copy)
      return
    case .beside(let kept):
      if Files.exists(kept) {
        // Two names of one file are not renamed: rename(2) does nothing then.
        if Self.isSameFile(kept, path) {
          try Files.remove(kept)
        } else {
          guard rename(kept, path) == 0 else { throw SystemError(path) }
        }
      }
    case .link(let text):
      if Files.link(path) != text {
        try Files.remove(scratch)
        guard symlink(text, scratch) == 0, rename(scratch, path) == 0 else { throw SystemError(path) }
      }
    case .absent:
      try Files.remove(path)
    }
    try Files.remove(scratch)
  }

  /// Throws away what was kept: the file is someone else's by now.
  package func forget() throws(SystemError) {
    if let kept = way.kept { try Files.remove(kept) }
    if case .copied = way { return }
    try Files.remove(scratch)
  }

  /// What is kept; nil when nothing is.
  package func original() throws(SystemError) -> [UInt8]? {
    try way.kept.flatMap { kept throws(SystemError) in try Files.read(kept) }
  }

  /// What the file said before, wherever that is kept.
  package func originalText() throws(SystemError) -> String {
    if case .link(let target) = way {
      return try Files.text(target.hasPrefix("/") ? target : Self.parent(of: path) + "/" + target) ?? ""
    }
    return String(decoding: try original() ?? [], as: UTF8.self)
  }

  /// Same length of life, owner and readers: only the bytes change.
  private static func overwrite(_ path: String, _ bytes: [UInt8]) throws(SystemError) {
    let raw = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC)
    guard raw >= 0 else { throw SystemError(path) }
    try Files.write(bytes, to: Descriptor(owning: raw), path)
  }

  private static func isSameFile(_ a: String, _ b: String) -> Bool {
    var first = stat()
    var second = stat()
    return lstat(a, &first) == 0 && lstat(b, &second) == 0 && first.st_ino == second.st_ino
      && first.st_dev == second.st_dev
  }
}

/// link(2), under a name that is not that of a method here.
private func linkFile(_ path: String, _ other: String) -> Int32 { link(path, other) }

package enum MountPoints {
  /// Whether something is mounted exactly there, from what /proc/self/mountinfo says (proc(5)).
  package static func contains(_ path: String, table: String? = try? Files.text("/proc/self/mountinfo")) -> Bool {
    for line in (table ?? "").split(separator: "\n") {
      let words = line.split(separator: " ")
      if words.count > 4, unescaped(words[4]) == path { return true }
    }
    return false
  }

  /// White space and backslashes are written as three octal digits there.
  private static func unescaped(_ word: Substring) -> String {
    guard word.contains("\\") else { return String(word) }
    var bytes: [UInt8] = []
    var rest = word.utf8[...]
    while let byte = rest.popFirst() {
      let digits = rest.prefix(3)
      if byte == UInt8(ascii: "\\"), digits.count == 3, let value = UInt8(String(Substring(digits)), radix: 8) {
        bytes.append(value)
        rest = rest.dropFirst(3)
      } else {
        bytes.append(byte)
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
