internal import CLibSSL
import Foundation

/// Who the server has to be.
struct TLSTrust: Sendable {
  /// DER of the certificates that are trusted alone; nil: those that the system trusts.
  var anchors: [Data]?
  /// Compared with the certificate's common name in place of the host's name.
  var commonName: String?

  /// A context that checks the chain. The caller frees it.
  func makeContext() throws -> OpaquePointer {
    guard let context = SSL_CTX_new(TLS_client_method()) else { throw TLSFailure.cause(else: "no context") }
    do {
      try prepare(context)
      return context
    } catch {
      SSL_CTX_free(context)
      throw error
    }
  }

  private func prepare(_ context: OpaquePointer) throws {
    guard clibssl_set_minimum_version(context, TLS1_2_VERSION) == 1 else { throw TLSFailure.cause(else: "no TLS 1.2") }
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
    guard let anchors else {
      guard SSL_CTX_set_default_verify_paths(context) == 1 else {
        throw TLSFailure.cause(else: "the system has no certificates to trust")
      }
      return
    }
    guard let store = SSL_CTX_get_cert_store(context) else { throw TLSFailure.cause(else: "no store") }
    for anchor in anchors { try Self.add(anchor, to: store) }
    // What is given is trusted, whether or not it is a root.
    X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context), UInt(X509_V_FLAG_PARTIAL_CHAIN))
  }

  private static func add(_ anchor: Data, to store: OpaquePointer) throws {
    let certificate = anchor.withUnsafeBytes { bytes -> OpaquePointer? in
      var start = bytes.bindMemory(to: UInt8.self).baseAddress
      guard let made = d2i_X509(nil, &start, bytes.count) else { return nil }
      guard start == bytes.bindMemory(to: UInt8.self).baseAddress.map({ $0 + bytes.count }) else {
        X509_free(made)
        return nil
      }
      return made
    }
    guard let certificate else {
      ERR_clear_error()
      throw KapeHTTPError.Cause.badAnchors
    }
    defer { X509_free(certificate) }
    guard X509_STORE_add_cert(store, certificate) == 1 else {
      throw TLSFailure.cause(else: "no room for a certificate")
    }
  }

  /// Says before the handshake which name the certificate has to have; nothing when its common name is compared after.
  func expect(_ host: String, isAddress: Bool, of ssl: OpaquePointer) throws {
    guard commonName == nil else { return }
    let parameters = SSL_get0_param(ssl)
    // Names are those of the subject alternative names alone (RFC 9525, section 2).
    X509_VERIFY_PARAM_set_hostflags(
      parameters, UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT))
    let done =
      isAddress
      ? X509_VERIFY_PARAM_set1_ip_asc(parameters, host) : X509_VERIFY_PARAM_set1_host(parameters, host, host.utf8.count)
    guard done == 1 else { throw TLSFailure.cause(else: "no such host name") }
  }

  /// Compares the common name after the handshake: there is one, and it is this, byte by byte.
  func check(_ ssl: OpaquePointer) throws {
    guard let commonName else { return }
    guard let certificate = SSL_get1_peer_certificate(ssl) else {
      throw KapeHTTPError.Cause.certificateRefused("there is none")
    }
    defer { X509_free(certificate) }
    let names = Self.commonNames(of: certificate)
    guard names.count == 1, let name = names.first ?? nil, !name.isEmpty, name == Array(commonName.utf8) else {
      throw KapeHTTPError.Cause.certificateRefused("its common name is not \(commonName)")
    }
  }

  /// In UTF-8; nil for one that is no text.
  private static func commonNames(of certificate: OpaquePointer) -> [[UInt8]?] {
    guard let subject = X509_get_subject_name(certificate) else { return [] }
    var names: [[UInt8]?] = []
    var index = X509_NAME_get_index_by_NID(subject, NID_commonName, -1)
    while index >= 0 {
      var text: UnsafeMutablePointer<UInt8>?
      let size = ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, index)))
      names.append(size >= 0 ? text.map { Array(UnsafeBufferPointer(start: $0, count: Int(size))) } : nil)
      CRYPTO_free(text, nil, 0)
      index = X509_NAME_get_index_by_NID(subject, NID_commonName, index)
    }
    ERR_clear_error()
    return names
  }
}

enum TLSFailure {
  /// The library's reason, or these words.
  static func cause(else words: String) -> KapeHTTPError.Cause {
    let code = ERR_get_error()
    ERR_clear_error()
    guard code != 0, let reason = ERR_reason_error_string(code) else { return .tls(words) }
    return .tls(String(cString: reason))
  }
}
