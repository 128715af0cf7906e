internal import CSodium

/// The text forms of a 32-byte key: base64 as `wg` writes it, hexadecimal as the configuration protocol does. Both are
/// converted in time that does not depend on the bytes.
enum KeyText {
  /// 43 characters and one '='.
  static let base64Size = 44
  static let hexSize = 64

  /// False unless `text` is 44 characters of standard base64 that stand for exactly 32 bytes, unused bits zero.
  static func decodeBase64(_ text: RawSpan, into bytes: UnsafeMutableRawBufferPointer) -> Bool {
    guard text.byteCount == base64Size, bytes.count == SecretStorage.size else { return false }
    var size = 0
    let status = text.withUnsafeBytes { text in
      sodium_base642bin(
        bytes.baseAddress!.assumingMemoryBound(to: UInt8.self), bytes.count,
        text.baseAddress!.assumingMemoryBound(to: CChar.self), text.count,
        nil, &size, nil, Int32(sodium_base64_VARIANT_ORIGINAL))
    }
    return status == 0 && size == bytes.count
  }

  /// False unless `text` is 64 hexadecimal digits, of either case.
  static func decodeHex(_ text: RawSpan, into bytes: UnsafeMutableRawBufferPointer) -> Bool {
    guard text.byteCount == hexSize, bytes.count == SecretStorage.size else { return false }
    var size = 0
    let status = text.withUnsafeBytes { text in
      sodium_hex2bin(
        bytes.baseAddress!.assumingMemoryBound(to: UInt8.self), bytes.count,
        text.baseAddress!.assumingMemoryBound(to: CChar.self), text.count, nil, &size, nil)
    }
    return status == 0 && size == bytes.count
  }

  /// Gives `body` 44 characters, wiped afterwards.
  static func withBase64<Result>(_ bytes: UnsafeRawBufferPointer, _ body: (RawSpan) -> Result) -> Result {
    withText(base64Size + 1) { text in
      sodium_bin2base64(
        text, base64Size + 1, bytes.baseAddress!.assumingMemoryBound(to: UInt8.self), bytes.count,
        Int32(sodium_base64_VARIANT_ORIGINAL))
      return body(UnsafeRawBufferPointer(start: text, count: base64Size).bytes)
    }
  }

  /// Gives `body` 64 lower-case digits, wiped afterwards.
  static func withHex<Result>(_ bytes: UnsafeRawBufferPointer, _ body: (RawSpan) -> Result) -> Result {
    withText(hexSize + 1) { text in
      sodium_bin2hex(text, hexSize + 1, bytes.baseAddress!.assumingMemoryBound(to: UInt8.self), bytes.count)
      return body(UnsafeRawBufferPointer(start: text, count: hexSize).bytes)
    }
  }

  private static func withText<Result>(_ size: Int, _ body: (UnsafeMutablePointer<CChar>) -> Result) -> Result {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: size) { buffer in
      buffer.initialize(repeating: 0)
      defer { sodium_memzero(buffer.baseAddress, buffer.count) }
      return body(buffer.baseAddress!)
    }
  }
}
