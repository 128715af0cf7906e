import Glibc

/// Which file a command line means, and which interface it is for.
package struct ConfigurationFile: Equatable, Sendable {
  package static let folder = "/etc/wireguard"
  /// What the kernel allows without the final zero.
  package static let nameLimit = 15

  package var path: String
  package var interface: String
  /// The file's name is longer than an interface's may be: what is left of it is `interface`.
  package var isNameCut: Bool

  package struct NotFound: Error, Equatable, CustomStringConvertible {
    package var description: String
  }

  /// `argument` is a name, looked up in /etc/wireguard, or a path. `exists` and `absolute` ask the file system.
  package init(
    _ argument: String, exists: (String) -> Bool = { access($0, F_OK) == 0 },
    absolute: (String) -> String = resolvedPath
  ) throws(NotFound) {
    let named = Self.folder + "/" + argument + ".conf"
    let isName = Self.isInterfaceName(argument)
    if isName && exists(named) {
      path = named
    } else if exists(argument) {
      path = absolute(argument)
    } else {
      throw NotFound(
        description: isName ? "neither \(named) nor a file \(argument) exists" : "\(argument) does not exist")
    }
    // The name that was given counts, not that of a file behind a symbolic link.
    let given = isName && path == named ? named : argument
    interface = try Self.interfaceName(given)
    isNameCut = Self.stem(given) != interface
  }

  /// The first 15 characters of the file name without its ending.
  package static func interfaceName(_ path: String) throws(NotFound) -> String {
    let interface = String(stem(path).unicodeScalars.prefix(nameLimit).map(Character.init))
    guard isInterfaceName(interface) else {
      throw NotFound(
        description: "'\(interface)' cannot be an interface's name; "
          + "name the file with letters, digits and _=+.- only, wg0.conf for one")
    }
    return interface
  }

  private static func stem(_ path: String) -> String {
    let name = String(path[(path.lastIndex(of: "/").map { path.index(after: $0) } ?? path.startIndex)...])
    if let dot = name.lastIndex(of: "."), dot != name.startIndex { return String(name[..<dot]) }
    return name
  }

  package static func isInterfaceName(_ name: String) -> Bool {
    !name.isEmpty && name.utf8.count <= nameLimit && name != "." && name != ".."
      && name.utf8.allSatisfy {
        switch $0 {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"):
          true
        default: "_=+.-".utf8.contains($0)
        }
      }
  }
}

/// Absolute, symbolic links followed; as it is when there is no such file.
package func resolvedPath(_ path: String) -> String {
  guard let resolved = realpath(path, nil) else { return path }
  defer { free(resolved) }
  return String(cString: resolved)
}
