import CLibSSL
import Foundation

/// A certificate with its key, made for a test.
final class TestCertificate: @unchecked Sendable {
  // Unchecked: not changed once it is made.
  private let certificate: OpaquePointer
  private let key: OpaquePointer

  struct Failed: Error {}

  /// Valid from `days.lowerBound` to `days.upperBound` days from now. Names are bytes: they may hold anything.
  init(
    commonNames: [[UInt8]], alternatives: String? = nil, issuer: TestCertificate? = nil, isAuthority: Bool = false,
    days: ClosedRange<Int> = -1...30
  ) throws {
    key = try Self.makeKey()
    guard let made = X509_new() else { throw Failed() }
    certificate = made
    X509_set_version(made, 2)
    ASN1_INTEGER_set(X509_get_serialNumber(made), Int.random(in: 1...Int(Int32.max)))
    X509_gmtime_adj(X509_getm_notBefore(made), days.lowerBound * 86400)
    X509_gmtime_adj(X509_getm_notAfter(made), days.upperBound * 86400)
    for name in commonNames {
      let utf8: Int32 = 0x1000
      guard
        X509_NAME_add_entry_by_NID(
          X509_get_subject_name(made), NID_commonName, utf8, name, Int32(name.count), -1, 0) == 1
      else { throw Failed() }
    }
    X509_set_issuer_name(made, X509_get_subject_name(issuer?.certificate ?? made))
    X509_set_pubkey(made, key)
    try add(NID_basic_constraints, isAuthority ? "critical,CA:TRUE" : "critical,CA:FALSE")
    if let alternatives { try add(NID_subject_alt_name, alternatives) }
    try add(NID_subject_key_identifier, "hash")
    if let issuer { try add(NID_authority_key_identifier, "keyid:always", issuer) }
    guard X509_sign(made, issuer?.key ?? key, EVP_sha256()) > 0 else { throw Failed() }
  }

  convenience init(
    commonName: String, alternatives: String? = nil, issuer: TestCertificate? = nil, isAuthority: Bool = false,
    days: ClosedRange<Int> = -1...30
  ) throws {
    try self.init(
      commonNames: [Array(commonName.utf8)], alternatives: alternatives, issuer: issuer, isAuthority: isAuthority,
      days: days)
  }

  static func authority(_ name: String = "Test Authority") throws -> TestCertificate {
    try TestCertificate(commonName: name, isAuthority: true)
  }

  deinit {
    X509_free(certificate)
    EVP_PKEY_free(key)
  }

  var pem: String { Self.text { PEM_write_bio_X509($0, certificate) } }
  var keyPEM: String { Self.text { PEM_write_bio_PrivateKey($0, key, nil, nil, 0, nil, nil) } }

  var der: Data {
    var bytes: UnsafeMutablePointer<UInt8>?
    let size = i2d_X509(certificate, &bytes)
    defer { CRYPTO_free(bytes, nil, 0) }
    return bytes.map { Data(bytes: $0, count: Int(size)) } ?? Data()
  }

  private func add(_ kind: Int32, _ value: String, _ issuer: TestCertificate? = nil) throws {
    var context = X509V3_CTX()
    X509V3_set_ctx(&context, issuer?.certificate ?? certificate, certificate, nil, nil, 0)
    guard let made = X509V3_EXT_conf_nid(nil, &context, kind, value) else { throw Failed() }
    defer { X509_EXTENSION_free(made) }
    guard X509_add_ext(certificate, made, -1) == 1 else { throw Failed() }
  }

  private static func makeKey() throws -> OpaquePointer {
    guard let context = EVP_PKEY_CTX_new_id(EVP_PKEY_EC, nil) else { throw Failed() }
    defer { EVP_PKEY_CTX_free(context) }
    var key: OpaquePointer?
    guard EVP_PKEY_keygen_init(context) == 1,
      EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context, NID_X9_62_prime256v1) == 1,
      EVP_PKEY_keygen(context, &key) == 1, let key
    else { throw Failed() }
    return key
  }

  private static func text(_ write: (OpaquePointer?) -> Int32) -> String {
    let memory = BIO_new(BIO_s_mem())
    defer { BIO_free(memory) }
    guard write(memory) == 1 else { return "" }
    var text: [UInt8] = []
    var part = [UInt8](repeating: 0, count: 4096)
    while case let count = BIO_read(memory, &part, Int32(part.count)), count > 0 { text += part[..<Int(count)] }
    return String(decoding: text, as: UTF8.self)
  }
}
