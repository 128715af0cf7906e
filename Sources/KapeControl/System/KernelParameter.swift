import Glibc

/// sysctl(8), by its files.
package enum KernelParameter {
  package static let folder = "/proc/sys/"
  package static let sourceValidMark = "net/ipv4/conf/all/src_valid_mark"

  package static func read(_ path: String) throws(SystemError) -> String {
    guard var text = try Files.text(folder + path) else { throw SystemError(folder + path, code: ENOENT) }
    if text.hasSuffix("\n") { text.removeLast() }
    return text
  }

  package static func write(_ value: String, to path: String) throws(SystemError) {
    let raw = open(folder + path, O_WRONLY | O_CLOEXEC)
    guard raw >= 0 else { throw SystemError(folder + path) }
    try Files.write(Array((value + "\n").utf8), to: Descriptor(owning: raw), folder + path)
  }
}
