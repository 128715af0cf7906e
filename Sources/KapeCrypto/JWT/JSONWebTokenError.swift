/// Why a token is not taken.
public enum JSONWebTokenError: Error, Equatable, Sendable {
  /// Not three parts of base64url with JSON in the first (RFC 7515, section 3.1), or larger than 64 KiB.
  case malformed(String)
  /// `none`, one that is not known here, or one that is not to be used.
  case algorithmNotAllowed(String)
  /// It depends on an extension (RFC 7515, section 4.1.11), and none is known here.
  case criticalExtension
  /// Another kind of token: the `typ` that it has.
  case wrongType(String?)
  /// No key of the set fits its key identifier and algorithm. A newer set may have one.
  case unknownKey(String?)
  case wrongSignature
  /// A required claim is missing, or one has another type than its own.
  case badClaim(String)
  case expired
  case notYetValid
  case wrongIssuer(String)
  case wrongAudience([String])
}

extension JSONWebTokenError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .malformed(let reason): "not a JSON Web Token: \(reason)"
    case .algorithmNotAllowed(let name): "signed with \(name), which is not allowed here"
    case .criticalExtension: "the token needs an extension that is not known here"
    case .wrongType(let type): "a token of the type \(type ?? "(none)"), which is for something else"
    case .unknownKey(let identifier): "signed with the key \(identifier ?? "(unnamed)"), which the issuer does not show"
    case .wrongSignature: "the signature is not that of the issuer's key"
    case .badClaim(let name): "the claim \(name) is missing, or not of its type"
    case .expired: "it has expired; if it is new, the clock here is ahead"
    case .notYetValid: "it is not valid yet; the clock here may be behind"
    case .wrongIssuer(let issuer): "issued by \(issuer), and not by the issuer of the settings"
    case .wrongAudience(let audience): "made for \(audience.joined(separator: ", ")), and not for this client"
    }
  }
}
