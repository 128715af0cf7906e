internal import COpenSSL

/// Owns a key of libcrypto.
///
/// `@unchecked Sendable`: nothing changes the key once it is here, and libcrypto reads a key from any number of threads
/// at once, each operation with a context of its own.
final class KeyHandle: @unchecked Sendable {
  let key: OpaquePointer

  init(owning key: OpaquePointer) { self.key = key }

  deinit { EVP_PKEY_free(key) }

  /// A named integer of the key, big-endian, with zeros in front up to `size` bytes.
  func integer(_ name: String, size: Int = 0) -> [UInt8]? {
    var number: OpaquePointer?
    guard EVP_PKEY_get_bn_param(key, name, &number) == 1, let number else { return nil }
    defer { BN_clear_free(number) }
    let used = Int(BN_num_bits(number) + 7) / 8
    return [UInt8](unsafeUninitializedCapacity: max(used, size)) { target, count in
      count = max(0, Int(BN_bn2binpad(number, target.baseAddress, Int32(max(used, size)))))
    }
  }

  /// nil: the key is of a kind that has none, or one of another size.
  func rawPublicKey(size: Int) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: size)
    var used = size
    guard EVP_PKEY_get_raw_public_key(key, &bytes, &used) == 1, used == size else { return nil }
    return bytes
  }
}
