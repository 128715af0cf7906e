internal import CSodium

/// Bytes that may hold secrets: a growing buffer with one owner, wiped when it grows, is emptied or goes. For
/// configuration files, the text of keys, and the answers of the configuration protocol.
public struct SecretBuffer: ~Copyable, Sendable {
  private var storage: Storage
  public private(set) var count = 0

  /// Unique to the buffer that owns it; `Sendable` only so that the buffer, which is never shared, may move.
  private final class Storage: @unchecked Sendable {
    let bytes: UnsafeMutableRawBufferPointer

    init(capacity: Int) {
      bytes = .allocate(byteCount: max(capacity, 64), alignment: 16)
    }

    deinit {
      sodium_memzero(bytes.baseAddress!, bytes.count)
      bytes.deallocate()
    }
  }

  public init(capacity: Int = 256) {
    storage = Storage(capacity: capacity)
  }

  public var isEmpty: Bool { count == 0 }

  /// Empties it; the memory stays for the next use.
  public mutating func removeAll() {
    sodium_memzero(storage.bytes.baseAddress!, count)
    count = 0
  }

  /// Drops the first `size` bytes.
  public mutating func removeFirst(_ size: Int) {
    precondition(size >= 0 && size <= count)
    let rest = count - size
    let start = storage.bytes.baseAddress!
    start.copyMemory(from: start + size, byteCount: rest)
    sodium_memzero(start + rest, size)
    count = rest
  }

  public mutating func append(_ byte: UInt8) {
    reserve(1)
    storage.bytes[count] = byte
    count += 1
  }

  public mutating func append(_ bytes: RawSpan) {
    bytes.withUnsafeBytes { append(copying: $0) }
  }

  public mutating func append(_ text: StaticString) {
    append(copying: UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  /// For text that is no secret.
  public mutating func append(_ text: String) {
    var text = text
    text.withUTF8 { append(copying: UnsafeRawBufferPointer($0)) }
  }

  public mutating func append(decimal value: some FixedWidthInteger) {
    append(String(value))
  }

  public mutating func append(base64 key: SecretKey<some SecretKeyUse>) {
    key.withUnsafeBytes { bytes in KeyText.withBase64(bytes) { append($0) } }
  }
  public mutating func append(base64 key: PublicKey) {
    key.withUnsafeBytes { bytes in KeyText.withBase64(bytes) { append($0) } }
  }

  public mutating func append(hex key: SecretKey<some SecretKeyUse>) {
    key.withUnsafeBytes { bytes in KeyText.withHex(bytes) { append($0) } }
  }
  public mutating func append(hex key: PublicKey) {
    key.withUnsafeBytes { bytes in KeyText.withHex(bytes) { append($0) } }
  }

  /// Room for `capacity` more bytes, of which `fill` says how many it wrote (more than there is room for is a
  /// programming error). It returns that number too.
  @discardableResult
  public mutating func append(capacity: Int, _ fill: (UnsafeMutableRawBufferPointer) -> Int) -> Int {
    reserve(capacity)
    let written = fill(UnsafeMutableRawBufferPointer(rebasing: storage.bytes[count..<(count + capacity)]))
    precondition(written >= 0 && written <= capacity)
    count += written
    return written
  }

  /// What is in it, valid during the call only.
  public borrowing func withBytes<Result: ~Copyable, Failure: Error>(
    _ body: (RawSpan) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(UnsafeRawBufferPointer(rebasing: storage.bytes[..<count]).bytes)
  }

  private mutating func append(copying bytes: UnsafeRawBufferPointer) {
    guard !bytes.isEmpty else { return }
    reserve(bytes.count)
    UnsafeMutableRawBufferPointer(rebasing: storage.bytes[count...]).copyMemory(from: bytes)
    count += bytes.count
  }

  private mutating func reserve(_ size: Int) {
    guard storage.bytes.count - count < size else { return }
    let larger = Storage(capacity: max(storage.bytes.count * 2, count + size))
    larger.bytes.copyMemory(from: UnsafeRawBufferPointer(rebasing: storage.bytes[..<count]))
    storage = larger
  }
}
