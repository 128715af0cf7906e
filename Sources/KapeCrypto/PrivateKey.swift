internal import CSodium

/// An X25519 private key (RFC 7748). Copies of the value share one place in memory, which is wiped when the last is gone
/// (see `SecretStorage` for the reasons). It never shows its bytes when it is printed, dumped or interpolated.
public struct PrivateKey: Sendable {
  public static let size = 32
  let storage: SecretStorage

  /// A new key from the system's random source, clamped as `wg genkey` does.
  public init() {
    storage = SecretStorage { bytes in
      randombytes_buf(bytes.baseAddress!, bytes.count)
      bytes[0] &= 248
      bytes[31] = (bytes[31] & 127) | 64
    }
  }

  /// nil unless there are 32 bytes. They are kept as they are: clamping is a matter of use.
  public init?(bytes: RawSpan) {
    guard bytes.byteCount == Self.size else { return nil }
    storage = SecretStorage { target in bytes.withUnsafeBytes { target.copyMemory(from: $0) } }
  }

  /// As `wg` takes it: 44 characters of base64, the last of them '='.
  public init?(base64 text: RawSpan) {
    guard let storage = SecretStorage(filledBy: { KeyText.decodeBase64(text, into: $0) }) else { return nil }
    self.storage = storage
  }

  /// 64 hexadecimal digits.
  public init?(hex text: RawSpan) {
    guard let storage = SecretStorage(filledBy: { KeyText.decodeHex(text, into: $0) }) else { return nil }
    self.storage = storage
  }

  /// Convenience for tests and callers whose secret is in a `String` already, which nothing wipes.
  public init?(base64 text: String) {
    self.init(base64: text.utf8Bytes.span.bytes)
  }

  public var publicKey: PublicKey {
    PublicKey { target in
      storage.withUnsafeBytes { bytes in
        _ = crypto_scalarmult_base(
          target.baseAddress!.assumingMemoryBound(to: UInt8.self),
          bytes.baseAddress!.assumingMemoryBound(to: UInt8.self))
      }
    }
  }

  /// All zero: stands for "no key" in the configuration protocol.
  public var isZero: Bool { storage.isZero }

  public static let zero = PrivateKey(storage: SecretStorage { _ in })

  private init(storage: SecretStorage) {
    self.storage = storage
  }

  /// The 32 bytes, valid during the call only.
  public func withUnsafeBytes<Result: ~Copyable, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try storage.withUnsafeBytes(body)
  }
}

extension PrivateKey: Equatable {
  /// In time that does not depend on the bytes.
  public static func == (a: PrivateKey, b: PrivateKey) -> Bool { SecretStorage.equal(a.storage, b.storage) }
}

extension PrivateKey: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  public var description: String { "(hidden)" }
  public var debugDescription: String { "PrivateKey(hidden)" }
  public var customMirror: Mirror { Mirror(self, children: []) }
}
