package import Foundation

/// The textual form of certificates, RFC 7468.
package enum PEMText {
  private static let begin = "-----BEGIN CERTIFICATE-----"
  private static let end = "-----END CERTIFICATE-----"

  /// The DER of each certificate, in order; text around them is passed over. nil when there is none, or one is not whole.
  package static func certificates(in text: String) -> [Data]? {
    var certificates: [Data] = []
    var rest = text[...]
    while let start = rest.range(of: begin) {
      guard let stop = rest.range(of: end, range: start.upperBound..<rest.endIndex) else { return nil }
      let body = rest[start.upperBound..<stop.lowerBound].filter { !$0.isWhitespace }
      guard let certificate = Data(base64Encoded: body), !certificate.isEmpty else { return nil }
      certificates.append(certificate)
      rest = rest[stop.upperBound...]
    }
    return certificates.isEmpty ? nil : certificates
  }
}
