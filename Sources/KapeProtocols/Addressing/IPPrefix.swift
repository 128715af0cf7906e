/// A network: an address whose bits after `length` are zero.
public struct IPPrefix: Hashable, Sendable {
  public let address: IPAddress
  public let length: Int

  /// Clears the host bits. nil when `length` is not within 0 to 32 or 0 to 128.
  public init?(_ address: IPAddress, length: Int) {
    guard length >= 0, length <= address.family.bitCount else { return nil }
    self.address = address.masked(to: length)
    self.length = length
  }

  /// ADDRESS/LENGTH, or an address alone for the whole length. Host bits are cleared.
  public init?(text: RawSpan) {
    guard let value = AddressWithLength(text: text, allowsNetmask: false) else { return nil }
    self.init(value.address, length: value.length)
  }

  public init?(_ text: String) {
    self.init(text: Array(text.utf8).span.bytes)
  }

  /// Every address of its family.
  public var isDefault: Bool { length == 0 }
}

extension IPPrefix: CustomStringConvertible {
  public var description: String { "\(address)/\(length)" }
}

/// An interface's address with the length of the network it is in; host bits are kept.
public struct InterfaceAddress: Hashable, Sendable {
  public let address: IPAddress
  public let prefixLength: Int

  /// nil when the length is not within 0 to 32 or 0 to 128.
  public init?(_ address: IPAddress, prefixLength: Int) {
    guard prefixLength >= 0, prefixLength <= address.family.bitCount else { return nil }
    self.address = address
    self.prefixLength = prefixLength
  }

  /// ADDRESS/LENGTH or ADDRESS/NETMASK as ip-address(8) takes it, or an address alone for the whole length.
  public init?(text: RawSpan) {
    guard let value = AddressWithLength(text: text, allowsNetmask: true) else { return nil }
    self.init(value.address, prefixLength: value.length)
  }

  public init?(_ text: String) {
    self.init(text: Array(text.utf8).span.bytes)
  }

  public var network: IPPrefix? { IPPrefix(address, length: prefixLength) }
}

extension InterfaceAddress: CustomStringConvertible {
  public var description: String { "\(address)/\(prefixLength)" }
}

struct AddressWithLength {
  let address: IPAddress
  let length: Int

  init?(text: RawSpan, allowsNetmask: Bool) {
    guard let slash = text.firstIndex(of: UInt8(ascii: "/")) else {
      guard let address = IPAddress(text: text) else { return nil }
      self.address = address
      length = address.family.bitCount
      return
    }
    guard let address = IPAddress(text: text.extracting(0..<slash)) else { return nil }
    self.address = address
    let rest = text.extracting((slash + 1)..<text.byteCount)
    if let length = rest.decimal(limit: UInt64(address.family.bitCount)) {
      self.length = Int(length)
    } else if allowsNetmask, address.family == .ipv4, let mask = IPAddress(text: rest), mask.family == .ipv4,
      let length = mask.netmaskLength
    {
      self.length = length
    } else {
      return nil
    }
  }
}

extension IPAddress {
  /// Number of leading one bits, if no other is set.
  fileprivate var netmaskLength: Int? {
    let length = (~high).leadingZeroBitCount
    return IPAddress.allOnes.masked(to: min(length, 32)) == self ? length : nil
  }

  private static let allOnes = IPAddress(ipv4: 255, 255, 255, 255)
}
