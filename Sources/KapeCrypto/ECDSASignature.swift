internal import COpenSSL

/// A P-256 signature in its two forms: r and s, 32 bytes each (RFC 7518, section 3.4), and DER, which libcrypto takes.
enum ECDSASignature {
  static let size = 64

  /// nil unless there are 64 bytes.
  static func encoded(_ plain: [UInt8]) -> [UInt8]? {
    guard plain.count == size, let signature = ECDSA_SIG_new() else { return nil }
    defer { ECDSA_SIG_free(signature) }
    let r = plain[..<32].withUnsafeBufferPointer { BN_bin2bn($0.baseAddress, 32, nil) }
    let s = plain[32...].withUnsafeBufferPointer { BN_bin2bn($0.baseAddress, 32, nil) }
    guard let r, let s, ECDSA_SIG_set0(signature, r, s) == 1 else {
      BN_free(r)
      BN_free(s)
      return nil
    }
    let length = i2d_ECDSA_SIG(signature, nil)
    guard length > 0 else { return nil }
    return [UInt8](unsafeUninitializedCapacity: Int(length)) { target, count in
      var position = target.baseAddress
      count = max(0, Int(i2d_ECDSA_SIG(signature, &position)))
    }
  }

  /// nil unless it is DER of two integers of at most 32 bytes.
  static func plain(_ encoded: ArraySlice<UInt8>) -> [UInt8]? {
    encoded.withUnsafeBufferPointer { encoded in
      var position = encoded.baseAddress
      guard let signature = d2i_ECDSA_SIG(nil, &position, encoded.count) else { return nil }
      defer { ECDSA_SIG_free(signature) }
      var plain = [UInt8](repeating: 0, count: size)
      let fits = plain.withUnsafeMutableBufferPointer { plain in
        BN_bn2binpad(ECDSA_SIG_get0_r(signature), plain.baseAddress, 32) == 32
          && BN_bn2binpad(ECDSA_SIG_get0_s(signature), plain.baseAddress! + 32, 32) == 32
      }
      return fits ? plain : nil
    }
  }
}
