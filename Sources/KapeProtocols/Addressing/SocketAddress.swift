#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// An address with a port, ready for a socket.
public struct SocketAddress: Hashable, Sendable {
  public var address: IPAddress
  public var port: UInt16
  /// The interface index that a link-local IPv6 address is meant on, else 0.
  public var scope: UInt32

  public init(_ address: IPAddress, port: UInt16, scope: UInt32 = 0) {
    self.address = address
    self.port = port
    self.scope = scope
  }

  /// ADDRESS:PORT or [ADDRESS%SCOPE]:PORT; the scope is a number, or a name that `scopeIndex` knows.
  public init?(text: RawSpan, scopeIndex: (String) -> UInt32? = InterfaceIndex.named) {
    guard let colon = text.lastIndex(of: UInt8(ascii: ":")),
      let port = text.extracting((colon + 1)..<text.byteCount).decimal(limit: 65_535)
    else { return nil }
    let bracketed = text[0] == UInt8(ascii: "[")
    if bracketed && (colon < 2 || text[colon - 1] != UInt8(ascii: "]")) { return nil }
    let host = text.extracting(bracketed ? 1..<(colon - 1) : 0..<colon)
    guard let scoped = ScopedAddress(text: host), bracketed == (scoped.address.family == .ipv6) else { return nil }
    address = scoped.address
    self.port = UInt16(port)
    scope = 0
    if let name = scoped.scope {
      guard let index = UInt32(name) ?? scopeIndex(name) else { return nil }
      scope = index
    }
  }
}

extension SocketAddress: CustomStringConvertible {
  /// 192.0.2.1:51820, [2001:db8::1]:51820, [fe80::1%2]:51820.
  public var description: String {
    switch address.family {
    case .ipv4: "\(address):\(port)"
    case .ipv6: scope == 0 ? "[\(address)]:\(port)" : "[\(address)%\(scope)]:\(port)"
    }
  }
}

/// An address as people write it, with the name or the number of a scope if it has one (RFC 4007 section 11).
public struct ScopedAddress: Hashable, Sendable {
  public let address: IPAddress
  /// An interface's name or index; only with IPv6.
  public let scope: String?

  /// nil when there is a scope and the address is IPv4, or when the scope cannot be an interface's name.
  public init?(_ address: IPAddress, scope: String? = nil) {
    if let scope {
      guard address.family == .ipv6, Self.isInterfaceName(Array(scope.utf8).span.bytes) else { return nil }
    }
    self.address = address
    self.scope = scope
  }

  public init?(text: RawSpan) {
    let percent = text.firstIndex(of: UInt8(ascii: "%"))
    guard let address = IPAddress(text: text.extracting(0..<(percent ?? text.byteCount))) else { return nil }
    self.address = address
    if let percent {
      let name = text.extracting((percent + 1)..<text.byteCount)
      guard address.family == .ipv6, Self.isInterfaceName(name), let scope = name.utf8String else { return nil }
      self.scope = scope
    } else {
      scope = nil
    }
  }

  /// What the kernel takes as a name, IFNAMSIZ included: no slash, no white space, no control character.
  static func isInterfaceName(_ text: RawSpan) -> Bool {
    guard text.byteCount > 0, text.byteCount < 16 else { return false }
    var index = 0
    while index < text.byteCount {
      let byte = text[index]
      if byte <= 0x20 || byte >= 0x7F || byte == UInt8(ascii: "/") || byte == UInt8(ascii: "]")
        || byte == UInt8(ascii: "%")
      {
        return false
      }
      index += 1
    }
    return true
  }
}

extension ScopedAddress: CustomStringConvertible {
  public var description: String { scope.map { "\(address)%\($0)" } ?? "\(address)" }
}

public enum InterfaceIndex {
  /// Asks the system; nil when there is no such interface now.
  public static func named(_ name: String) -> UInt32? {
    let index = if_nametoindex(name)
    return index == 0 ? nil : index
  }
}
