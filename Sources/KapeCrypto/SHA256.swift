internal import CSodium

/// SHA-256 (FIPS 180-4) and what is made of it.
public enum SHA256 {
  public static let size = 32

  public static func hash(_ bytes: RawSpan) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: size) { target, count in
      bytes.withUnsafeBytes { bytes in
        _ = crypto_hash_sha256(
          target.baseAddress!, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), UInt64(bytes.count))
      }
      count = size
    }
  }

  public static func hash(_ bytes: [UInt8]) -> [UInt8] { hash(bytes.span.bytes) }

  /// The hash of what comes in pieces.
  public struct Running: ~Copyable {
    private var state = crypto_hash_sha256_state()

    public init() { crypto_hash_sha256_init(&state) }

    public mutating func update(_ bytes: RawSpan) {
      bytes.withUnsafeBytes { bytes in
        _ = crypto_hash_sha256_update(
          &state, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), UInt64(bytes.count))
      }
    }

    public consuming func finish() -> [UInt8] {
      [UInt8](unsafeUninitializedCapacity: size) { target, count in
        crypto_hash_sha256_final(&state, target.baseAddress!)
        count = size
      }
    }
  }

  /// HMAC-SHA-256 (RFC 2104) with a key of any length.
  public static func authenticate(_ message: [UInt8], key: [UInt8]) -> [UInt8] {
    var state = crypto_auth_hmacsha256_state()
    defer { withUnsafeMutableBytes(of: &state) { SecretMemory.wipe($0) } }
    crypto_auth_hmacsha256_init(&state, key, key.count)
    crypto_auth_hmacsha256_update(&state, message, UInt64(message.count))
    return [UInt8](unsafeUninitializedCapacity: size) { target, count in
      crypto_auth_hmacsha256_final(&state, target.baseAddress!)
      count = size
    }
  }
}

extension SecretMemory {
  /// In time that depends on the lengths alone.
  public static func areEqual(_ a: [UInt8], _ b: [UInt8]) -> Bool {
    a.count == b.count && sodium_memcmp(a, b, a.count) == 0
  }

  /// From the system's generator, fit for keys.
  public static func randomBytes(_ count: Int) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: count) { target, initialized in
      if count > 0 { randombytes_buf(target.baseAddress!, count) }
      initialized = count
    }
  }
}
