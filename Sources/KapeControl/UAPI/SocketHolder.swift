internal import CLinux
import Glibc

/// A process that has a name in use.
package struct SocketHolder: Equatable, Sendable, CustomStringConvertible {
  package var processIdentifier: Int32
  /// The command's name; empty when it cannot be read.
  package var command: String

  package init(processIdentifier: Int32) {
    self.processIdentifier = processIdentifier
    var name = readSmallFile("/proc/\(processIdentifier)/comm") ?? ""
    if name.hasSuffix("\n") { name.removeLast() }
    command = name
  }

  package var description: String {
    command.isEmpty ? "process \(processIdentifier)" : "process \(processIdentifier) (\(command))"
  }

  /// Whether it runs still. A socket may have been opened by a process that handed it on and ended.
  package var isAlive: Bool { kill(processIdentifier, 0) == 0 || errno == EPERM }

  /// Who listens behind a connected socket (SO_PEERCRED).
  static func behind(_ descriptor: borrowing Descriptor) -> SocketHolder? {
    var credentials = clinux_credentials()
    var size = socklen_t(MemoryLayout<clinux_credentials>.size)
    guard getsockopt(descriptor.raw, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0, credentials.pid > 0 else {
      return nil
    }
    return SocketHolder(processIdentifier: credentials.pid)
  }

  /// Who else has a TUN interface of that name open, from what the kernel tells of descriptors in /proc. Only processes
  /// that we may look into are seen; one in another network namespace is not told apart.
  package static func ofTun(named name: String) -> [SocketHolder] {
    folder("/proc").compactMap { Int32($0) }.filter { process in
      process != getpid()
        && folder("/proc/\(process)/fd").contains { descriptor in
          linkTarget("/proc/\(process)/fd/\(descriptor)") == "/dev/net/tun"
            && (readSmallFile("/proc/\(process)/fdinfo/\(descriptor)") ?? "").split(separator: "\n")
              .contains { $0 == "iff:\t" + name }
        }
    }.map { SocketHolder(processIdentifier: $0) }
  }
}

private func folder(_ path: String) -> [String] {
  guard let handle = opendir(path) else { return [] }
  defer { closedir(handle) }
  var names: [String] = []
  while let entry = readdir(handle) {
    let name = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    names.append(name)
  }
  return names
}

package func linkTarget(_ path: String) -> String? {
  withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(PATH_MAX)) { buffer in
    guard let start = buffer.baseAddress else { return nil }
    let size = readlink(path, start, buffer.count)
    guard size >= 0 else { return nil }
    return String(decoding: UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer)[..<size]), as: UTF8.self)
  }
}

/// The first 4 KiB of a file of text.
package func readSmallFile(_ path: String) -> String? {
  let raw = open(path, O_RDONLY | O_CLOEXEC)
  guard raw >= 0 else { return nil }
  let file = Descriptor(owning: raw)
  return withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 1) { buffer in
    guard let size = retrying({ read(file.raw, buffer.baseAddress, buffer.count) }) else { return nil }
    return String(decoding: buffer[..<size], as: UTF8.self)
  }
}
