/// An X25519 public key (RFC 7748): 32 bytes that anyone may see.
public struct PublicKey: Hashable, Sendable {
  public static let size = 32
  private var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)

  /// nil unless there are 32 bytes.
  public init?(bytes: RawSpan) {
    guard bytes.byteCount == Self.size else { return nil }
    bytes.withUnsafeBytes { source in
      withUnsafeMutableBytes(of: &words) { $0.copyMemory(from: source) }
    }
  }

  init(_ fill: (UnsafeMutableRawBufferPointer) -> Void) {
    withUnsafeMutableBytes(of: &words, fill)
  }

  /// As `wg` takes it: 44 characters of base64, the last of them '='.
  public init?(base64 text: RawSpan) {
    guard withUnsafeMutableBytes(of: &words, { KeyText.decodeBase64(text, into: $0) }) else { return nil }
  }

  public init?(base64 text: String) {
    self.init(base64: text.utf8Bytes.span.bytes)
  }

  /// 64 hexadecimal digits.
  public init?(hex text: RawSpan) {
    guard withUnsafeMutableBytes(of: &words, { KeyText.decodeHex(text, into: $0) }) else { return nil }
  }

  public init?(hex text: String) {
    self.init(hex: text.utf8Bytes.span.bytes)
  }

  public var base64: String { withBytes { bytes in KeyText.withBase64(bytes) { String(ascii: $0) } } }
  public var hex: String { withBytes { bytes in KeyText.withHex(bytes) { String(ascii: $0) } } }

  /// All zero: no point that a peer can have.
  public var isZero: Bool { words.0 | words.1 | words.2 | words.3 == 0 }

  public func withUnsafeBytes<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try Swift.withUnsafeBytes(of: words, body)
  }

  private func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    Swift.withUnsafeBytes(of: words, body)
  }

  public static func == (a: PublicKey, b: PublicKey) -> Bool { a.words == b.words }

  public func hash(into hasher: inout Hasher) {
    hasher.combine(words.0)
    hasher.combine(words.1)
    hasher.combine(words.2)
    hasher.combine(words.3)
  }
}

extension PublicKey: CustomStringConvertible {
  /// Base64.
  public var description: String { base64 }
}

extension String {
  var utf8Bytes: [UInt8] { Array(utf8) }

  init(ascii bytes: RawSpan) {
    self = bytes.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
  }
}
