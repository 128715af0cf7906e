import Foundation
package import KapeProtocols

/// An error's text as logs, statuses and people may have it: one line, not long, without keys and public addresses.
package func loggable(_ error: any Error) -> String {
  if let error = error as? PacketTunnelError { return loggable(error.description) }
  if let error = error as? any LocalizedError, let text = error.errorDescription { return loggable(text) }
  return loggable(String(describing: error))
}

package func loggable(_ text: String) -> String {
  let line = String(String.UnicodeScalarView(text.unicodeScalars.map { $0.isLoggable ? $0 : " " }))
  let short = line.count > 300 ? line.prefix(300) + "…" : Substring(line)
  return Redaction.hidingAll(in: String(short))
}

extension Unicode.Scalar {
  fileprivate var isLoggable: Bool {
    switch properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned: false
    default: true
    }
  }
}

extension Redaction {
  /// Puts `<redacted>` in place of each public IP address. Private, shared, link-local, loopback and unspecified ones
  /// stay: they tell nothing about where somebody is.
  package static func hidingPublicAddresses(in text: String) -> String {
    var result = ""
    var rest = text[...]
    while let start = rest.firstIndex(where: \.isAddressCharacter) {
      result += rest[..<start]
      let end = rest[start...].firstIndex { !$0.isAddressCharacter } ?? rest.endIndex
      result += hidden(rest[start..<end])
      rest = rest[end...]
    }
    return result + rest
  }

  /// A run of characters that addresses are made of; around an address may be a port, or a sentence's full stop.
  private static func hidden(_ run: Substring) -> String {
    let core = run.trimmingSuffix { $0 == "." || $0 == ":" }
    let tail = run[core.endIndex...]
    if let address = IPAddress(String(core)) {
      return (address.isPrivate ? String(core) : "<redacted>") + tail
    }
    if let colon = core.lastIndex(of: ":"), let address = IPAddress(String(core[..<colon])), address.family == .ipv4 {
      return (address.isPrivate ? String(core) : "<redacted>" + core[colon...]) + tail
    }
    return String(run)
  }
}

extension StringProtocol where SubSequence == Substring {
  fileprivate func trimmingSuffix(while predicate: (Character) -> Bool) -> Substring {
    var end = endIndex
    while end > startIndex, predicate(self[index(before: end)]) { end = index(before: end) }
    return self[startIndex..<end]
  }
}

extension Character {
  fileprivate var isAddressCharacter: Bool { isASCII && (isHexDigit || self == "." || self == ":") }
}

extension IPAddress {
  private static let privatePrefixes = [
    "0.0.0.0/8", "10.0.0.0/8", "127.0.0.0/8", "100.64.0.0/10", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16",
    "::/128", "::1/128", "fc00::/7", "fe80::/10",
  ].compactMap { IPPrefix($0) }

  package var isPrivate: Bool {
    Self.privatePrefixes.contains { $0.address.family == family && IPPrefix(self, length: $0.length) == $0 }
  }
}
