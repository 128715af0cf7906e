public import Foundation

/// Whose certificates a client trusts.
public enum KapeHTTPAnchors: Sendable {
  /// Those that the system trusts.
  case system
  /// These alone, in PEM: one certificate or several, text around them is passed over.
  case pem(String)
  /// These alone, in DER.
  case der([Data])

  /// DER of each; nil when the system's are meant.
  func certificates() throws(KapeHTTPError.Cause) -> [Data]? {
    switch self {
    case .system: return nil
    case .pem(let text):
      guard let certificates = PEMText.certificates(in: text) else { throw .badAnchors }
      return certificates
    case .der(let certificates):
      guard !certificates.isEmpty else { throw .badAnchors }
      return certificates
    }
  }
}
