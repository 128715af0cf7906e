package import CKapeDataPlane

// Addresses and prefixes, between their Swift and their C form.

extension IPAddress {
  /// nil for a family that is neither; of IPv4 the first four bytes count.
  package init?(dataPlaneFamily family: UInt8, bytes: UnsafeRawBufferPointer) {
    switch family {
    case Family.ipv4.rawValue: self.init(bytes: UnsafeRawBufferPointer(rebasing: bytes[..<4]).bytes)
    case Family.ipv6.rawValue: self.init(bytes: UnsafeRawBufferPointer(rebasing: bytes[..<16]).bytes)
    default: return nil
    }
  }
}

extension SocketAddress {
  /// nil for an address that is not specified.
  package init?(dataPlane address: kdp_address) {
    guard
      let ip = withUnsafeBytes(of: address.bytes, { IPAddress(dataPlaneFamily: address.family, bytes: $0) })
    else { return nil }
    self.init(ip, port: address.port, scope: address.scope)
  }

  package var dataPlane: kdp_address {
    var result = kdp_address()
    result.family = address.family.rawValue
    result.port = port
    result.scope = scope
    address.withUnsafeBytes { source in
      withUnsafeMutableBytes(of: &result.bytes) { $0.copyBytes(from: source) }
    }
    return result
  }
}

extension IPPrefix {
  package init?(dataPlane prefix: kdp_prefix) {
    guard let ip = withUnsafeBytes(of: prefix.bytes, { IPAddress(dataPlaneFamily: prefix.family, bytes: $0) }) else {
      return nil
    }
    self.init(ip, length: Int(prefix.length))
  }

  package var dataPlane: kdp_prefix {
    var result = kdp_prefix()
    result.family = address.family.rawValue
    result.length = UInt8(length)
    address.withUnsafeBytes { source in
      withUnsafeMutableBytes(of: &result.bytes) { $0.copyBytes(from: source) }
    }
    return result
  }
}
