import KapeProtocols

/// Where an app wants the answer of a sign-in (RFC 6749, section 3.1.2).
struct RedirectURI: Sendable, Equatable {
  let text: String
  /// Without the port, when it is http and an IP address of the loopback: its port may be any (RFC 8252, section 7.3).
  private let loopback: String?

  /// nil: no absolute URI, one with a fragment, or with characters that no URI has.
  init?(_ text: String) {
    guard text.utf8.count <= 2048, let colon = text.firstIndex(of: ":"), Self.isScheme(text[..<colon]),
      text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && !"\"<>\\^`{|}#".utf8.contains($0) }),
      text.index(after: colon) != text.endIndex
    else { return nil }
    self.text = text
    loopback = Self.withoutPort(text)
  }

  private static func isScheme(_ text: Substring) -> Bool {
    guard let first = text.utf8.first, (0x61...0x7A).contains(first | 0x20) else { return false }
    return text.utf8.allSatisfy { byte in
      (0x61...0x7A).contains(byte | 0x20) || (0x30...0x39).contains(byte) || "+-.".utf8.contains(byte)
    }
  }

  private static func withoutPort(_ text: String) -> String? {
    for host in ["http://127.0.0.1", "http://[::1]"] where text.hasPrefix(host) {
      var rest = text.dropFirst(host.count)
      if rest.first == ":" {
        let port = rest.dropFirst().prefix { $0 != "/" && $0 != "?" }
        guard !port.isEmpty, port.utf8.allSatisfy({ (0x30...0x39).contains($0) }), UInt16(port) != nil else {
          return nil
        }
        rest = rest.dropFirst(1 + port.count)
      }
      guard rest.isEmpty || rest.first == "/" || rest.first == "?" else { return nil }
      return host + rest
    }
    return nil
  }

  /// Whether the settings' `registered` allows it.
  func isAllowed(by registered: RedirectURI) -> Bool {
    text == registered.text || (loopback != nil && loopback == registered.loopback)
  }

  /// With parameters added to the query.
  func with(_ parameters: [(name: String, value: String)]) -> String {
    let added = parameters.map { "\($0.name)=\(FormData.encoded($0.value))" }.joined(separator: "&")
    return text + (text.contains("?") ? "&" : "?") + added
  }
}
