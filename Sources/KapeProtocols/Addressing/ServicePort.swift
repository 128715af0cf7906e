#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// Ports as getaddrinfo(3) takes them for UDP: a number, or a name of services(5).
public enum ServicePort {
  /// nil for a number over 65,535 (which getaddrinfo would cut to 16 bits) and for an unknown name.
  public static func parse(_ text: RawSpan) -> UInt16? {
    guard text.byteCount > 0 else { return nil }
    if let number = text.decimal(limit: 65_535) { return UInt16(number) }
    if text[0] == UInt8(ascii: "+"), let number = text.extracting(1..<text.byteCount).decimal(limit: 65_535) {
      return UInt16(number)
    }
    guard text[0].isASCIILetter, text.byteCount <= 32, let name = text.utf8String else { return nil }
    return lookUp(name)
  }

  private static func lookUp(_ name: String) -> UInt16? {
    #if canImport(Glibc)
      var entry = servent()
      var found: UnsafeMutablePointer<servent>?
      return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 1024) { buffer in
        guard getservbyname_r(name, "udp", &entry, buffer.baseAddress!, buffer.count, &found) == 0, let found else {
          return nil
        }
        return UInt16(bigEndian: UInt16(truncatingIfNeeded: found.pointee.s_port))
      }
    #else
      guard let found = getservbyname(name, "udp") else { return nil }
      return UInt16(bigEndian: UInt16(truncatingIfNeeded: found.pointee.s_port))
    #endif
  }
}
