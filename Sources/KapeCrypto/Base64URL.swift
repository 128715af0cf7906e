internal import CSodium

/// Base64 with the URL and file name alphabet, without padding (RFC 4648, section 5; RFC 7515, section 2).
public enum Base64URL {
  public static func encode(_ bytes: RawSpan) -> String {
    let capacity = sodium_base64_encoded_len(bytes.byteCount, variant)
    return withUnsafeTemporaryAllocation(of: CChar.self, capacity: capacity) { text in
      text.initialize(repeating: 0)
      defer { sodium_memzero(text.baseAddress, text.count) }
      bytes.withUnsafeBytes { bytes in
        _ = sodium_bin2base64(
          text.baseAddress!, capacity, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count, variant)
      }
      return String(
        decoding: UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(text)[..<(capacity - 1)]), as: UTF8.self)
    }
  }

  public static func encode(_ bytes: [UInt8]) -> String { encode(bytes.span.bytes) }

  /// nil unless `text` is what `encode` makes of some bytes: another character, padding, or unused bits that are not
  /// zero are refused.
  public static func decode(_ text: some StringProtocol) -> [UInt8]? {
    let text = Array(text.utf8)
    var size = 0
    var isRight = false
    let bytes = [UInt8](unsafeUninitializedCapacity: text.count / 4 * 3 + 2) { target, count in
      text.withUnsafeBytes { text in
        let status = sodium_base642bin(
          target.baseAddress!, target.count, text.baseAddress?.assumingMemoryBound(to: CChar.self), text.count, nil,
          &size, nil, variant)
        isRight = status == 0
      }
      count = isRight ? size : 0
    }
    return isRight ? bytes : nil
  }

  private static let variant = Int32(sodium_base64_VARIANT_URLSAFE_NO_PADDING)
}
