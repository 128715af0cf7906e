import Foundation

/// What an issuer tells of itself (OpenID Connect Discovery 1.0, section 3; RFC 8414).
struct OIDCMetadata: Equatable, Sendable {
  var issuer: String
  var authorizationEndpoint: URL
  var tokenEndpoint: URL
  var keysURL: URL
  var revocationEndpoint: URL?
  /// It puts `iss` into authorization responses (RFC 9207).
  var namesItself: Bool

  /// Where it is to be had: the path is appended to the issuer's.
  static func url(of issuer: URL) -> URL {
    let text = issuer.absoluteString
    return URL(string: (text.hasSuffix("/") ? String(text.dropLast()) : text) + "/.well-known/openid-configuration")
      ?? issuer
  }

  /// - Throws: `KapeAuthError.invalidResponse`.
  init(_ document: Data, issuer expected: URL) throws(KapeAuthError) {
    guard let fields = try? JSONDecoder().decode(Fields.self, from: document) else {
      throw .invalidResponse("its metadata lacks an endpoint, or is no JSON")
    }
    // Section 4.3: exactly the same, or somebody may stand in for the issuer.
    guard fields.issuer.utf8.elementsEqual(expected.absoluteString.utf8) else {
      throw .invalidResponse(
        "it calls itself \(fields.issuer), and the settings' IssuerURL is \(expected.absoluteString): both have to be the "
          + "same, character by character")
    }
    if let methods = fields.codeChallengeMethods, !methods.contains("S256") {
      throw .invalidResponse("it does not take PKCE with S256")
    }
    issuer = fields.issuer
    authorizationEndpoint = try Self.endpoint(fields.authorizationEndpoint, "authorization_endpoint")
    tokenEndpoint = try Self.endpoint(fields.tokenEndpoint, "token_endpoint")
    keysURL = try Self.endpoint(fields.keysURL, "jwks_uri")
    revocationEndpoint = try fields.revocationEndpoint.map { text throws(KapeAuthError) in
      try Self.endpoint(text, "revocation_endpoint")
    }
    namesItself = fields.namesItself ?? false
  }

  private static func endpoint(_ text: String, _ name: String) throws(KapeAuthError) -> URL {
    guard let url = URL(string: text, encodingInvalidCharacters: false), let host = url.host, !host.isEmpty,
      url.scheme == "https" || url.scheme == "http" && LoopbackName.contains(host), url.fragment == nil
    else { throw .invalidResponse("its \(name) is not an https URL") }
    return url
  }

  private struct Fields: Decodable {
    var issuer: String
    var authorizationEndpoint: String
    var tokenEndpoint: String
    var keysURL: String
    var revocationEndpoint: String?
    var codeChallengeMethods: [String]?
    var namesItself: Bool?

    enum CodingKeys: String, CodingKey {
      case issuer
      case authorizationEndpoint = "authorization_endpoint"
      case tokenEndpoint = "token_endpoint"
      case keysURL = "jwks_uri"
      case revocationEndpoint = "revocation_endpoint"
      case codeChallengeMethods = "code_challenge_methods_supported"
      case namesItself = "authorization_response_iss_parameter_supported"
    }
  }
}
