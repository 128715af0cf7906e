internal import CSodium

/// 32 secret bytes on the heap, once: every copy of a key value refers to the same object, and the last one to go wipes
/// it.
///
/// A reference, because a configuration with thousands of peers is copied between actors and kept in arrays, which
/// cannot hold noncopyable values; sharing one object is what keeps the number of copies of the bytes at one. The memory
/// is not locked: a page or a guarded allocation a key does not scale to 10,000 preshared keys. A process that must keep
/// secrets out of swap locks itself with mlockall(2).
///
/// Safe to share: the bytes are written in `init`, before anyone else has a reference, and in `deinit`, after everyone
/// else has given theirs up.
final class SecretStorage: @unchecked Sendable {
  static let size = 32
  private let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 8)

  /// Filled by `fill`, which gets 32 zero bytes.
  init(_ fill: (UnsafeMutableRawBufferPointer) -> Void) {
    bytes.initializeMemory(as: UInt8.self, repeating: 0)
    fill(bytes)
  }

  /// nil when `fill` returns false.
  init?(filledBy fill: (UnsafeMutableRawBufferPointer) -> Bool) {
    bytes.initializeMemory(as: UInt8.self, repeating: 0)
    if !fill(bytes) { return nil }
  }

  deinit {
    sodium_memzero(bytes.baseAddress!, bytes.count)
    bytes.deallocate()
  }

  func withUnsafeBytes<Result: ~Copyable, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(UnsafeRawBufferPointer(bytes))
  }

  var isZero: Bool {
    sodium_is_zero(bytes.baseAddress!, bytes.count) == 1
  }

  static func equal(_ a: SecretStorage, _ b: SecretStorage) -> Bool {
    sodium_memcmp(a.bytes.baseAddress!, b.bytes.baseAddress!, size) == 0
  }
}
