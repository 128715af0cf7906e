internal import CSodium

/// For secrets in memory that is not one of this module's types.
public enum SecretMemory {
  /// Overwrites with zeros, in a way that a compiler does not leave out.
  public static func wipe(_ bytes: UnsafeMutableRawBufferPointer) {
    guard let start = bytes.baseAddress else { return }
    sodium_memzero(start, bytes.count)
  }
}
