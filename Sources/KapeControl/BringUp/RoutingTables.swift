import Glibc
package import KapeProtocols

/// Names of routing tables, where iproute2 keeps them.
package enum RoutingTables {
  private static let files = ["/etc/iproute2/rt_tables", "/usr/share/iproute2/rt_tables"]
  private static let folders = ["/etc/iproute2/rt_tables.d", "/usr/share/iproute2/rt_tables.d"]

  package static func number(of name: String) -> UInt32? {
    let more = folders.flatMap { folder in
      Files.names(in: folder).filter { $0.hasSuffix(".conf") }.map { folder + "/" + $0 }
    }
    for file in files + more {
      if let text = try? Files.text(file), let number = number(of: name, in: text) { return number }
    }
    return builtIn[name]
  }

  private static let builtIn: [String: UInt32] = ["default": 253, "main": 254, "local": 255]

  package static func number(of name: String, in text: String) -> UInt32? {
    for line in text.split(separator: "\n") where !line.hasPrefix("#") {
      let words = line.split { $0 == " " || $0 == "\t" }
      if words.count >= 2, words[1] == name[...] {
        return words[0].hasPrefix("0x") ? UInt32(words[0].dropFirst(2), radix: 16) : UInt32(words[0])
      }
    }
    return nil
  }

  /// nil: there is no table of that name.
  package static func resolve(_ table: WireGuardConfiguration.RoutingTable) -> RoutePlan.Table? {
    switch table {
    case .automatic: .automatic
    case .off: .off
    case .number(let number): .number(number)
    case .name(let name): number(of: name).map { .number($0) }
    }
  }
}
