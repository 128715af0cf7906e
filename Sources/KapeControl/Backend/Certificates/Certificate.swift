internal import COpenSSL
import KapeCrypto

/// A certificate (RFC 5280) with its private key.
final class Certificate {
  struct Failure: Error, CustomStringConvertible {
    let reason: String
    var description: String { "certificate: \(reason)" }
  }

  private let certificate: OpaquePointer
  private let key: OpaquePointer

  private init(owning certificate: OpaquePointer, _ key: OpaquePointer) {
    self.certificate = certificate
    self.key = key
  }

  deinit {
    X509_free(certificate)
    EVP_PKEY_free(key)
  }

  /// A new one for a new P-256 key, signed by `issuer`, or by itself: then it is a CA's. `names` are host names and IP
  /// addresses.
  static func make(commonName: String, names: [String], days: Int, issuer: Certificate?) throws -> Certificate {
    guard let certificate = X509_new() else { throw Failure(reason: "no memory") }
    let made: Certificate
    do {
      made = Certificate(owning: certificate, try newKey())
    } catch {
      X509_free(certificate)
      throw error
    }
    X509_set_version(certificate, 2)
    try made.setSerialNumber()
    // A clock that is a little slow must not find it too young.
    X509_gmtime_adj(X509_getm_notBefore(certificate), -3600)
    X509_gmtime_adj(X509_getm_notAfter(certificate), days * 86_400)
    let subject = X509_get_subject_name(certificate)
    guard X509_NAME_add_entry_by_txt(subject, "CN", Int32(MBSTRING_FLAG), commonName, -1, -1, 0) == 1,
      X509_set_issuer_name(certificate, issuer.map { X509_get_subject_name($0.certificate) } ?? subject) == 1,
      X509_set_pubkey(certificate, made.key) == 1
    else { throw Failure(reason: "the name '\(commonName)' is not taken") }
    try made.addExtensions(names, issuer: issuer)
    guard X509_sign(certificate, issuer?.key ?? made.key, EVP_sha256()) > 0 else { throw Failure(reason: "not signed") }
    return made
  }

  /// From what `pem` and `keyPEM` gave.
  convenience init(pem: [UInt8], key keyPEM: [UInt8]) throws {
    let key = Self.reading(keyPEM) { PEM_read_bio_PrivateKey($0, nil, nil, nil) }
    guard let key else { throw Failure(reason: "the private key is not PEM") }
    guard let certificate = Self.reading(pem, { PEM_read_bio_X509($0, nil, nil, nil) }) else {
      EVP_PKEY_free(key)
      throw Failure(reason: "the certificate is not PEM")
    }
    self.init(owning: certificate, key)
    guard X509_check_private_key(certificate, key) == 1 else {
      throw Failure(reason: "the private key is not the certificate's")
    }
  }

  var pem: String { Self.writing { PEM_write_bio_X509($0, certificate) } }

  /// Not encrypted.
  var keyPEM: String { Self.writing { PEM_write_bio_PrivateKey($0, key, nil, nil, 0, nil, nil) } }

  private static func newKey() throws -> OpaquePointer {
    let bytes = try SigningKey(generating: .es256).privateBytes()
    let key = bytes.withBytes { bytes in
      bytes.withUnsafeBytes { bytes in
        var position = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
        return d2i_AutoPrivateKey(nil, &position, bytes.count)
      }
    }
    guard let key else { throw Failure(reason: "no key") }
    return key
  }

  private func setSerialNumber() throws {
    var bytes = SecretMemory.randomBytes(16)
    bytes[0] = bytes[0] & 0x7F | 0x40
    guard let number = BN_bin2bn(bytes, 16, nil) else { throw Failure(reason: "no memory") }
    defer { BN_free(number) }
    guard BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) != nil else {
      throw Failure(reason: "no serial number")
    }
  }

  private func addExtensions(_ names: [String], issuer: Certificate?) throws {
    var context = X509V3_CTX()
    X509V3_set_ctx(&context, (issuer ?? self).certificate, certificate, nil, nil, 0)
    var wanted: [(Int32, String)] = [(NID_subject_key_identifier, "hash")]
    if issuer == nil {
      wanted += [(NID_basic_constraints, "critical,CA:TRUE"), (NID_key_usage, "critical,keyCertSign,cRLSign")]
    } else {
      wanted += [
        (NID_basic_constraints, "critical,CA:FALSE"), (NID_key_usage, "critical,digitalSignature"),
        (NID_ext_key_usage, "serverAuth"), (NID_authority_key_identifier, "keyid"),
      ]
      let list = names.map {
        ($0.contains(":") || $0.utf8.allSatisfy("0123456789.".utf8.contains) ? "IP:" : "DNS:") + $0
      }
      if !list.isEmpty { wanted.append((NID_subject_alt_name, list.joined(separator: ","))) }
    }
    for (kind, value) in wanted {
      guard let made = X509V3_EXT_conf_nid(nil, &context, kind, value) else {
        throw Failure(reason: "'\(value)' is not taken: host names and IP addresses are")
      }
      defer { X509_EXTENSION_free(made) }
      guard X509_add_ext(certificate, made, -1) == 1 else { throw Failure(reason: "no memory") }
    }
  }

  private static func writing(_ write: (OpaquePointer) -> Int32) -> String {
    guard let memory = BIO_new(BIO_s_mem()) else { return "" }
    defer { BIO_free(memory) }
    guard write(memory) == 1 else { return "" }
    var text = [UInt8](repeating: 0, count: Int(BIO_ctrl_pending(memory)))
    let size = BIO_read(memory, &text, Int32(text.count))
    defer { text.withUnsafeMutableBytes { SecretMemory.wipe($0) } }
    return String(decoding: text.prefix(max(0, Int(size))), as: UTF8.self)
  }

  private static func reading<Value>(_ text: [UInt8], _ read: (OpaquePointer) -> Value?) -> Value? {
    guard let memory = BIO_new_mem_buf(text, Int32(text.count)) else { return nil }
    defer { BIO_free(memory) }
    return read(memory)
  }
}
