/// Where a peer is to be found: an address, or a name that is looked up later.
public struct WireGuardEndpoint: Hashable, Sendable {
  public enum Host: Hashable, Sendable {
    case address(ScopedAddress)
    /// A DNS name in lower case, or one of the short IPv4 forms that only the resolver understands.
    case name(String)
  }

  public var host: Host
  public var port: UInt16

  public init(host: Host, port: UInt16) {
    self.host = host
    self.port = port
  }

  /// The address, when no look-up is needed but for a scope's name. nil for a name, and for a scope that `scopeIndex`
  /// does not know.
  public func socketAddress(scopeIndex: (String) -> UInt32? = InterfaceIndex.named) -> SocketAddress? {
    guard case .address(let scoped) = host else { return nil }
    guard let scope = scoped.scope else { return SocketAddress(scoped.address, port: port) }
    guard let index = UInt32(scope) ?? scopeIndex(scope) else { return nil }
    return SocketAddress(scoped.address, port: port, scope: index)
  }

  public enum ParseError: Error, Hashable, Sendable {
    case unclosedBracket
    case portMissing
    case portInvalid
    case hostInvalid
  }

  /// HOST:PORT as wg takes it: the port after the last colon, so that an IPv6 address works without brackets too, and
  /// anything that is no address is a name, in brackets or not.
  public init(text: RawSpan) throws(ParseError) {
    let hostRange: Range<Int>
    let portStart: Int
    if text.byteCount > 0, text[0] == UInt8(ascii: "[") {
      guard let close = text.firstIndex(of: UInt8(ascii: "]")) else { throw .unclosedBracket }
      guard close + 2 < text.byteCount, text[close + 1] == UInt8(ascii: ":") else { throw .portMissing }
      hostRange = 1..<close
      portStart = close + 2
    } else {
      guard let colon = text.lastIndex(of: UInt8(ascii: ":")), colon + 1 < text.byteCount else { throw .portMissing }
      hostRange = 0..<colon
      portStart = colon + 1
    }
    guard let port = ServicePort.parse(text.extracting(portStart..<text.byteCount)) else { throw .portInvalid }
    let host = text.extracting(hostRange)
    if let address = ScopedAddress(text: host) {
      self.host = .address(address)
    } else if let name = Self.hostName(host) {
      self.host = .name(name)
    } else {
      throw .hostInvalid
    }
    self.port = port
  }

  public init(_ text: String) throws(ParseError) {
    try self.init(text: Array(text.utf8).span.bytes)
  }

  /// At most 253 characters in labels of 1 to 63 letters, digits, hyphens and underscores; a dot at the end is allowed.
  private static func hostName(_ text: RawSpan) -> String? {
    guard text.byteCount > 0, text.byteCount <= 254 else { return nil }
    var label = 0
    var index = 0
    while index < text.byteCount {
      let byte = text[index]
      if byte == UInt8(ascii: ".") {
        if label == 0 { return nil }
        label = 0
      } else if byte.isASCIILetter || byte.decimalDigit != nil || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
      {
        label += 1
        if label > 63 { return nil }
      } else {
        return nil
      }
      index += 1
    }
    return text.utf8String?.lowercased()
  }
}

extension WireGuardEndpoint: CustomStringConvertible {
  /// With IPv6 addresses in brackets.
  public var description: String {
    switch host {
    case .address(let address) where address.address.family == .ipv6: "[\(address)]:\(port)"
    case .address(let address): "\(address):\(port)"
    case .name(let name): "\(name):\(port)"
    }
  }
}
