internal import CSodium

/// An X25519 private key (RFC 7748). A new one is clamped as `wg genkey` does it; for one that is given, clamping is a
/// matter of use.
public typealias PrivateKey = SecretKey<PrivateKeyUse>

public enum PrivateKeyUse: SecretKeyUse {
  public static var name: String { "PrivateKey" }
  public static func shape(_ bytes: UnsafeMutableRawBufferPointer) {
    bytes[0] &= 248
    bytes[31] = (bytes[31] & 127) | 64
  }
}

extension SecretKey where Use == PrivateKeyUse {
  public var publicKey: PublicKey {
    PublicKey { target in
      storage.withUnsafeBytes { bytes in
        _ = crypto_scalarmult_base(
          target.baseAddress!.assumingMemoryBound(to: UInt8.self),
          bytes.baseAddress!.assumingMemoryBound(to: UInt8.self))
      }
    }
  }
}
