import Glibc
import KapeCrypto

/// Reads a file whole, into memory that is wiped.
enum InputFile {
  struct Failure: Error {
    let reason: String
  }

  /// No file that the program reads is larger.
  static let limit = 65 << 20

  /// "-" is standard input.
  static func read(_ path: String) throws(Failure) -> SecretBuffer {
    if path == "-" { return try read(descriptor: STDIN_FILENO, name: "standard input") }
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw Failure(reason: "\(path): \(String(cString: strerror(errno)))") }
    defer { close(descriptor) }
    return try read(descriptor: descriptor, name: path)
  }

  static func read(descriptor: Int32, name: String) throws(Failure) -> SecretBuffer {
    var content = SecretBuffer(capacity: 16_384)
    while true {
      var failure: Int32 = 0
      let size = content.append(capacity: 16_384) { room in
        while true {
          let size = Glibc.read(descriptor, room.baseAddress, room.count)
          if size < 0 && errno == EINTR { continue }
          if size < 0 { failure = errno }
          return max(size, 0)
        }
      }
      if failure != 0 { throw Failure(reason: "\(name): \(String(cString: strerror(failure)))") }
      if size == 0 { return content }
      if content.count > limit { throw Failure(reason: "\(name): larger than \(limit >> 20) MiB") }
    }
  }
}

/// Where a configuration is, given what stands on the command line.
enum ConfigurationPath {
  static let directory = "/etc/wireguard"

  /// A name stands for NAME.conf in /etc/wireguard, as with wg-quick; anything else, and a name for which nothing is
  /// there, is a path.
  static func find(_ argument: String) -> String {
    guard argument != "-", isName(argument) else { return argument }
    let path = "\(directory)/\(argument).conf"
    if access(path, F_OK) == 0 { return path }
    return access(argument, F_OK) == 0 || argument.hasSuffix(".conf") ? argument : path
  }

  /// wg-quick's rule for names of interfaces.
  static func isName(_ text: String) -> Bool {
    (1...15).contains(text.utf8.count)
      && text.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "="), UInt8(ascii: "+"),
          UInt8(ascii: "."), UInt8(ascii: "-"):
          true
        default: false
        }
      }
  }
}
