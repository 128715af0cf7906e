#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// An IPv4 or IPv6 address.
public struct IPAddress: Hashable, Sendable {
  public enum Family: UInt8, Hashable, Sendable, CaseIterable {
    case ipv4 = 4
    case ipv6 = 6

    /// Bits of an address: 32 or 128.
    public var bitCount: Int { self == .ipv4 ? 32 : 128 }
  }

  public let family: Family
  /// The address as a number: its first bit is the highest of `high`; an IPv4 address is in the upper half of `high`.
  let high, low: UInt64

  init(family: Family, high: UInt64, low: UInt64) {
    self.family = family
    self.high = high
    self.low = low
  }

  public init(ipv4 a: UInt8, _ b: UInt8, _ c: UInt8, _ d: UInt8) {
    family = .ipv4
    high = UInt64(a) << 56 | UInt64(b) << 48 | UInt64(c) << 40 | UInt64(d) << 32
    low = 0
  }

  /// Network byte order; nil unless there are 4 or 16 bytes.
  public init?(bytes: RawSpan) {
    guard bytes.byteCount == 4 || bytes.byteCount == 16 else { return nil }
    var words: (UInt64, UInt64) = (0, 0)
    bytes.withUnsafeBytes { source in
      withUnsafeMutableBytes(of: &words) { $0.copyMemory(from: source) }
    }
    self.init(
      family: bytes.byteCount == 4 ? .ipv4 : .ipv6, high: .init(bigEndian: words.0), low: .init(bigEndian: words.1))
  }

  /// The forms of inet_pton(3): dotted quads and RFC 4291 section 2.2, no scope, no abbreviated IPv4.
  public init?(text: RawSpan) {
    guard text.byteCount > 0, text.byteCount < Int(INET6_ADDRSTRLEN), !text.contains(0) else { return nil }
    let family: Family = text.contains(UInt8(ascii: ":")) ? .ipv6 : .ipv4
    var words: (UInt64, UInt64) = (0, 0)
    let valid = withUnsafeTemporaryAllocation(of: CChar.self, capacity: text.byteCount + 1) { buffer in
      text.withUnsafeBytes { UnsafeMutableRawBufferPointer(buffer).copyMemory(from: $0) }
      buffer[text.byteCount] = 0
      return inet_pton(family == .ipv4 ? AF_INET : AF_INET6, buffer.baseAddress!, &words) == 1
    }
    guard valid else { return nil }
    self.init(family: family, high: .init(bigEndian: words.0), low: .init(bigEndian: words.1))
  }

  public init?(_ text: String) {
    self.init(text: Array(text.utf8).span.bytes)
  }

  /// 4 or 16 bytes in network byte order, valid during the call only.
  public func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    let words = (high.bigEndian, low.bigEndian)
    return Swift.withUnsafeBytes(of: words) { body(UnsafeRawBufferPointer(rebasing: $0[..<(family.bitCount / 8)])) }
  }

  public static let anyIPv4 = IPAddress(family: .ipv4, high: 0, low: 0)
  public static let anyIPv6 = IPAddress(family: .ipv6, high: 0, low: 0)

  public var isUnspecified: Bool { high | low == 0 }
  /// fe80::/10, the addresses that need a scope.
  public var isLinkLocal: Bool { family == .ipv6 && high >> 54 == 0xFE80 >> 6 }

  /// With all bits after the first `length` cleared.
  public func masked(to length: Int) -> IPAddress {
    precondition(length >= 0 && length <= family.bitCount)
    return IPAddress(
      family: family,
      high: length >= 64 ? high : high & ~(UInt64.max >> UInt64(length)),
      low: length <= 64 ? 0 : low & (length == 128 ? .max : ~(UInt64.max >> UInt64(length - 64))))
  }
}

extension IPAddress: CustomStringConvertible {
  /// As inet_ntop(3) writes it.
  public var description: String {
    withUnsafeBytes { bytes in
      withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(INET6_ADDRSTRLEN)) { text in
        guard
          inet_ntop(
            family == .ipv4 ? AF_INET : AF_INET6, bytes.baseAddress!, text.baseAddress!, socklen_t(text.count)) != nil
        else { return "" }
        return String(cString: text.baseAddress!)
      }
    }
  }
}
