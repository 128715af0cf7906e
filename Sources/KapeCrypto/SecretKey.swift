internal import CSodium

/// 32 secret bytes that are used as a key. Copies of the value share one place in memory, which is wiped when the last is
/// gone (see `SecretStorage` for the reasons). It never shows its bytes when it is printed, dumped or interpolated.
public struct SecretKey<Use: SecretKeyUse>: Sendable {
  public static var size: Int { SecretStorage.size }
  let storage: SecretStorage

  /// A new key from the system's random source.
  public init() {
    storage = SecretStorage { bytes in
      randombytes_buf(bytes.baseAddress!, bytes.count)
      Use.shape(bytes)
    }
  }

  /// nil unless there are 32 bytes. They are kept as they are.
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

  public static var zero: SecretKey { SecretKey(storage: SecretStorage { _ in }) }

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

/// What a secret key is for, so that one is not taken for the other.
public protocol SecretKeyUse: Sendable {
  /// "PrivateKey".
  static var name: String { get }
  /// Makes a key for this use of random bytes.
  static func shape(_ bytes: UnsafeMutableRawBufferPointer)
}

extension SecretKey: Equatable {
  /// In time that does not depend on the bytes.
  public static func == (a: SecretKey, b: SecretKey) -> Bool { SecretStorage.equal(a.storage, b.storage) }
}

extension SecretKey: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  public var description: String { "(hidden)" }
  public var debugDescription: String { "\(Use.name)(hidden)" }
  public var customMirror: Mirror { Mirror(self, children: []) }
}
