internal import CSodium

/// Bytes that only who has the key can read or make: XChaCha20-Poly1305 with a random nonce of 192 bits
/// (draft-irtf-cfrg-xchacha-03), a nonce and a tag of 40 bytes together around them.
public enum SealedBox {
  public static let overhead = 40
  private static let nonceSize = 24

  /// `context` is no secret and not in the box; whoever opens it has to give the same.
  public static func seal(_ plain: [UInt8], key: SealingKey, context: [UInt8]) -> [UInt8] {
    let nonce = SecretMemory.randomBytes(nonceSize)
    return nonce
      + [UInt8](unsafeUninitializedCapacity: plain.count + overhead - nonceSize) { target, count in
        var size: UInt64 = 0
        key.withUnsafeBytes { key in
          _ = crypto_aead_xchacha20poly1305_ietf_encrypt(
            target.baseAddress!, &size, plain, UInt64(plain.count), context, UInt64(context.count), nil, nonce,
            key.baseAddress!.assumingMemoryBound(to: UInt8.self))
        }
        count = Int(size)
      }
  }

  /// nil: another key, another context, or not what was sealed.
  public static func open(_ box: [UInt8], key: SealingKey, context: [UInt8]) -> [UInt8]? {
    guard box.count >= overhead else { return nil }
    var isOpened = false
    let plain = [UInt8](unsafeUninitializedCapacity: box.count - overhead + 1) { target, count in
      var size: UInt64 = 0
      box.withUnsafeBufferPointer { box in
        key.withUnsafeBytes { key in
          isOpened =
            crypto_aead_xchacha20poly1305_ietf_decrypt(
              target.baseAddress!, &size, nil, box.baseAddress! + nonceSize, UInt64(box.count - nonceSize), context,
              UInt64(context.count), box.baseAddress!, key.baseAddress!.assumingMemoryBound(to: UInt8.self)) == 0
        }
      }
      count = isOpened ? Int(size) : 0
    }
    return isOpened ? plain : nil
  }
}

/// The key of a `SealedBox`.
public typealias SealingKey = SecretKey<SealingKeyUse>

public enum SealingKeyUse: SecretKeyUse {
  public static var name: String { "SealingKey" }
  public static func shape(_ bytes: UnsafeMutableRawBufferPointer) {}
}
