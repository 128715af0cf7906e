internal import CSodium

/// A 32-byte symmetric key that both ends know. Shared and wiped as `PrivateKey` is; never shown when printed.
public struct PresharedKey: Sendable {
  public static let size = 32
  let storage: SecretStorage

  /// A new key from the system's random source.
  public init() {
    storage = SecretStorage { randombytes_buf($0.baseAddress!, $0.count) }
  }

  /// nil unless there are 32 bytes.
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

  /// All zero: stands for "no key".
  public var isZero: Bool { storage.isZero }

  public static let zero = PresharedKey(storage: SecretStorage { _ in })

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

extension PresharedKey: Equatable {
  /// In time that does not depend on the bytes.
  public static func == (a: PresharedKey, b: PresharedKey) -> Bool { SecretStorage.equal(a.storage, b.storage) }
}

extension PresharedKey: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  public var description: String { "(hidden)" }
  public var debugDescription: String { "PresharedKey(hidden)" }
  public var customMirror: Mirror { Mirror(self, children: []) }
}
