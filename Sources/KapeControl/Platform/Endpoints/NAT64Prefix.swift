package import KapeProtocols

/// The prefix by which a network without IPv4 reaches IPv4 addresses (RFC 6052).
package struct NAT64Prefix: Hashable, Sendable {
  /// What RFC 7050 section 2.2 asks for: a name with IPv4 addresses alone.
  package static let name = "ipv4only.arpa"
  /// Its addresses.
  private static let known: [[UInt8]] = [[192, 0, 0, 170], [192, 0, 0, 171]]
  /// RFC 6052 section 2.2, the usual one first.
  private static let lengths = [96, 64, 56, 48, 40, 32]
  private static let wellKnown = IPPrefix("64:ff9b::/96")

  package let prefix: IPPrefix

  /// nil unless the length is one of RFC 6052 and bits 64 to 71 are zero.
  package init?(_ prefix: IPPrefix) {
    guard prefix.address.family == .ipv6, Self.lengths.contains(prefix.length), Self.bytes(prefix.address)[8] == 0
    else { return nil }
    self.prefix = prefix
  }

  /// From the IPv6 addresses that a resolver of the network gives for `name` (RFC 7050 section 3); nil: there is no NAT64.
  package init?(answers: [IPAddress]) {
    for answer in answers where answer.family == .ipv6 {
      for length in Self.lengths {
        guard let prefix = IPPrefix(answer, length: length), let candidate = NAT64Prefix(prefix) else { continue }
        let bytes = Self.bytes(answer)
        if Self.known.contains(Self.places(length).map { bytes[$0] }) {
          self = candidate
          return
        }
      }
    }
    return nil
  }

  /// The IPv6 address that stands for an IPv4 one; nil for one that is not to be translated (RFC 6052 section 3.1).
  package func synthesized(_ address: IPAddress) -> IPAddress? {
    guard address.family == .ipv4, !(prefix == Self.wellKnown && address.isPrivate) else { return nil }
    var bytes = Self.bytes(prefix.address)
    for (place, byte) in zip(Self.places(prefix.length), Self.bytes(address)) { bytes[place] = byte }
    return IPAddress(bytes: bytes.span.bytes)
  }

  /// Where in the address the four bytes are: after the prefix, with byte 8 passed over.
  private static func places(_ length: Int) -> [Int] {
    Array((length / 8..<16).filter { $0 != 8 }.prefix(4))
  }

  private static func bytes(_ address: IPAddress) -> [UInt8] {
    address.withUnsafeBytes { Array($0) }
  }
}
