internal import COpenSSL

/// A public key that signatures are checked with.
public struct SignatureKey: Sendable {
  public let parameters: PublicKeyParameters
  private let handle: KeyHandle

  public var algorithm: SignatureAlgorithm {
    switch parameters {
    case .p256: .es256
    case .rsa: .rs256
    case .ed25519: .eddsa
    }
  }

  /// Shorter RSA keys are refused (RFC 7518, section 3.3).
  public static let leastModulusBits = 2048
  /// Longer ones would cost a server or an app too much.
  public static let mostModulusBits = 8192

  /// nil: not a point of the curve, a modulus shorter or longer than the bounds, or an exponent that is even or 1.
  public init?(_ parameters: PublicKeyParameters) {
    let made: OpaquePointer?
    switch parameters {
    case .p256(let x, let y): made = Self.makeP256(x, y)
    case .rsa(let modulus, let exponent): made = Self.makeRSA(modulus, exponent)
    case .ed25519(let x): made = Self.makeEd25519(x)
    }
    guard let made else { return nil }
    handle = KeyHandle(owning: made)
    self.parameters = parameters
  }

  /// Whether `signature` was made of `message` with the private key; false too for bytes that are no signature at all.
  public func isValid(_ signature: [UInt8], of message: [UInt8]) -> Bool {
    let encoded: [UInt8]?
    switch parameters {
    case .p256: encoded = ECDSASignature.encoded(signature)
    case .rsa, .ed25519: encoded = signature
    }
    guard let encoded, let context = EVP_MD_CTX_new() else { return false }
    defer { EVP_MD_CTX_free(context) }
    guard EVP_DigestVerifyInit(context, nil, algorithm.digest, nil, handle.key) == 1 else { return false }
    return EVP_DigestVerify(context, encoded, encoded.count, message, message.count) == 1
  }

  private static func makeEd25519(_ x: [UInt8]) -> OpaquePointer? {
    x.count == 32 ? EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nil, x, 32) : nil
  }

  private static func makeP256(_ x: [UInt8], _ y: [UInt8]) -> OpaquePointer? {
    guard x.count == 32, y.count == 32 else { return nil }
    return checked(copenssl_p256_public_key([4] + x + y))
  }

  private static func makeRSA(_ modulus: [UInt8], _ exponent: [UInt8]) -> OpaquePointer? {
    guard modulus.count <= mostModulusBits / 8, (1...8).contains(exponent.count),
      let n = BN_bin2bn(modulus, Int32(modulus.count), nil)
    else { return nil }
    defer { BN_free(n) }
    guard let e = BN_bin2bn(exponent, Int32(exponent.count), nil) else { return nil }
    defer { BN_free(e) }
    guard BN_num_bits(n) >= leastModulusBits, BN_is_odd(n) == 1, BN_is_odd(e) == 1, BN_is_one(e) == 0 else {
      return nil
    }
    return copenssl_rsa_public_key(n, e)
  }

  /// The point is on the curve.
  private static func checked(_ key: OpaquePointer?) -> OpaquePointer? {
    guard let key else { return nil }
    guard let context = EVP_PKEY_CTX_new_from_pkey(nil, key, nil) else {
      EVP_PKEY_free(key)
      return nil
    }
    defer { EVP_PKEY_CTX_free(context) }
    guard EVP_PKEY_public_check(context) == 1 else {
      EVP_PKEY_free(key)
      return nil
    }
    return key
  }
}

extension SignatureAlgorithm {
  /// What a message is hashed with before it is signed; nil where the algorithm does that itself.
  var digest: OpaquePointer? {
    switch self {
    case .es256, .rs256: EVP_sha256()
    case .eddsa: nil
    }
  }
}
