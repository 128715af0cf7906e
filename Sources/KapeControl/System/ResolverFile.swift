package import KapeProtocols

/// resolv.conf(5): what of it a tunnel reads and writes.
package enum ResolverFile {
  package struct Content: Equatable, Sendable {
    package var servers: [ScopedAddress] = []
    package var search: [String] = []
  }

  /// What a resolver would take from it. The last `search` or `domain` line counts.
  package static func read(_ text: String) -> Content {
    var content = Content()
    forEachLine(text) { keyword, values, _ in
      switch keyword {
      case "nameserver":
        if let value = values.first, let address = ScopedAddress(text: Array(value.utf8).span.bytes) {
          content.servers.append(address)
        }
      case "search", "domain": content.search = values.map(String.init)
      default: break
      }
    }
    return content
  }

  /// How a tunnel's file begins.
  package static func heading(_ interface: String) -> String { "# while the tunnel \(interface) is up; " }

  /// The file while the tunnel is up: its servers and search domains in place of those of `original`; what the tunnel
  /// does not name stays, options too.
  package static func write(_ wanted: Content, over original: String, interface: String) -> String {
    var text = heading(interface) + "what was here before comes back with 'kape down \(interface)'\n"
    for server in wanted.servers { text += "nameserver \(server)\n" }
    if !wanted.search.isEmpty { text += "search " + wanted.search.joined(separator: " ") + "\n" }
    forEachLine(original) { keyword, _, line in
      switch keyword {
      case "nameserver": if wanted.servers.isEmpty { text += line + "\n" }
      case "search", "domain": if wanted.search.isEmpty && wanted.servers.isEmpty { text += line + "\n" }
      case "options", "sortlist": text += line + "\n"
      default: break
      }
    }
    return text
  }

  private static func forEachLine(_ text: String, _ body: (Substring, [Substring], Substring) -> Void) {
    for line in text.split(separator: "\n") {
      // A comment begins in the first column; the keyword too.
      guard let first = line.first, first != "#", first != ";" else { continue }
      let words = line.split { $0 == " " || $0 == "\t" || $0 == "\r" }
      if let keyword = words.first { body(keyword, Array(words.dropFirst()), line) }
    }
  }
}

/// hosts(5).
package enum HostsFile {
  /// Every address that the file gives a name, in its order; names are compared without case.
  package static func addresses(of name: String, in text: String) -> [IPAddress] {
    var found: [IPAddress] = []
    let wanted = name.lowercased()
    for line in text.split(separator: "\n") {
      let words = (line.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false).first ?? "")
        .split { $0 == " " || $0 == "\t" || $0 == "\r" }
      guard let first = words.first, words.dropFirst().contains(where: { $0.lowercased() == wanted }),
        let address = ScopedAddress(text: Array(first.utf8).span.bytes)?.address, !found.contains(address)
      else { continue }
      found.append(address)
    }
    return found
  }
}
