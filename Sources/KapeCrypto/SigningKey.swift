internal import COpenSSL

/// A private key that signatures are made with. It does not leave libcrypto's memory but by `privateBytes`.
public struct SigningKey: Sendable {
  public let algorithm: SignatureAlgorithm
  /// What others check with.
  public let publicKey: SignatureKey
  private let handle: KeyHandle

  public enum Failure: Error, Equatable {
    /// No private key, or of another kind than the algorithm's.
    case notAKey
    /// libcrypto has no memory or no randomness.
    case library
  }

  /// A new one. An RSA key has 2,048 bits and takes a tenth of a second or more: not on a thread that others wait for.
  public init(generating algorithm: SignatureAlgorithm) throws(Failure) {
    guard let context = EVP_PKEY_CTX_new_from_name(nil, algorithm.keyName, nil) else {
      throw .library
    }
    defer { EVP_PKEY_CTX_free(context) }
    var key: OpaquePointer?
    guard EVP_PKEY_keygen_init(context) == 1 else { throw .library }
    let isSet =
      switch algorithm {
      case .es256: EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context, NID_X9_62_prime256v1)
      case .rs256: EVP_PKEY_CTX_set_rsa_keygen_bits(context, Int32(SignatureKey.leastModulusBits))
      case .eddsa: Int32(1)
      }
    guard isSet == 1, EVP_PKEY_generate(context, &key) == 1, let key else { throw .library }
    try self.init(KeyHandle(owning: key), algorithm)
  }

  /// From what `privateBytes` gave.
  public init(privateBytes: RawSpan, _ algorithm: SignatureAlgorithm) throws(Failure) {
    let key = privateBytes.withUnsafeBytes { bytes in
      var position = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
      return d2i_AutoPrivateKey(nil, &position, bytes.count)
    }
    guard let key else { throw .notAKey }
    try self.init(KeyHandle(owning: key), algorithm)
  }

  private init(_ handle: KeyHandle, _ algorithm: SignatureAlgorithm) throws(Failure) {
    let parameters: PublicKeyParameters
    switch algorithm {
    case .es256:
      guard let x = handle.integer(OSSL_PKEY_PARAM_EC_PUB_X, size: 32),
        let y = handle.integer(OSSL_PKEY_PARAM_EC_PUB_Y, size: 32)
      else { throw .notAKey }
      parameters = .p256(x: x, y: y)
    case .rs256:
      guard let modulus = handle.integer(OSSL_PKEY_PARAM_RSA_N), let exponent = handle.integer(OSSL_PKEY_PARAM_RSA_E)
      else { throw .notAKey }
      parameters = .rsa(modulus: modulus, exponent: exponent)
    case .eddsa:
      guard let x = handle.rawPublicKey(size: 32) else { throw .notAKey }
      parameters = .ed25519(x: x)
    }
    guard let publicKey = SignatureKey(parameters) else { throw .notAKey }
    self.handle = handle
    self.algorithm = algorithm
    self.publicKey = publicKey
  }

  /// DER of PKCS #8 (RFC 5208), not encrypted.
  public func privateBytes() throws(Failure) -> SecretBuffer {
    guard let information = EVP_PKEY2PKCS8(handle.key) else { throw .library }
    defer { PKCS8_PRIV_KEY_INFO_free(information) }
    let length = i2d_PKCS8_PRIV_KEY_INFO(information, nil)
    guard length > 0 else { throw .library }
    var bytes = SecretBuffer(capacity: Int(length))
    bytes.append(capacity: Int(length)) { room in
      var position = room.baseAddress?.assumingMemoryBound(to: UInt8.self)
      return max(0, Int(i2d_PKCS8_PRIV_KEY_INFO(information, &position)))
    }
    return bytes
  }

  /// The signature as a JSON Web Signature has it.
  public func signature(of message: [UInt8]) throws(Failure) -> [UInt8] {
    guard let context = EVP_MD_CTX_new() else { throw .library }
    defer { EVP_MD_CTX_free(context) }
    var size = 0
    guard EVP_DigestSignInit(context, nil, algorithm.digest, nil, handle.key) == 1,
      EVP_DigestSign(context, nil, &size, message, message.count) == 1
    else { throw .library }
    var signature = [UInt8](repeating: 0, count: size)
    guard EVP_DigestSign(context, &signature, &size, message, message.count) == 1 else { throw .library }
    switch algorithm {
    case .rs256, .eddsa: return Array(signature[..<size])
    case .es256:
      guard let plain = ECDSASignature.plain(signature[..<size]) else { throw .library }
      return plain
    }
  }
}

extension SignatureAlgorithm {
  /// libcrypto's name of the kind of key.
  fileprivate var keyName: String {
    switch self {
    case .es256: "EC"
    case .rs256: "RSA"
    case .eddsa: "ED25519"
    }
  }
}
