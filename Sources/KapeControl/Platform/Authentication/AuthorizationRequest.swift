import Foundation
import KapeCrypto

/// One way to the issuer's page and back (RFC 6749, section 4.1; OpenID Connect Core 1.0, section 3.1), with what ties
/// the answer to it.
struct AuthorizationRequest: Sendable {
  static let scope = "openid profile email offline_access"

  let metadata: OIDCMetadata
  let clientId: String
  /// With the port of the listener, where there is one.
  let redirectURL: URL
  let state: String
  let nonce: String
  let proof: ProofKey

  init(_ metadata: OIDCMetadata, clientId: String, redirectURL: URL) {
    self.metadata = metadata
    self.clientId = clientId
    self.redirectURL = redirectURL
    state = Base64URL.encode(SecretMemory.randomBytes(32))
    nonce = Base64URL.encode(SecretMemory.randomBytes(32))
    proof = ProofKey()
  }

  /// What the browser is to open.
  var url: URL {
    let values: KeyValuePairs = [
      "response_type": "code", "client_id": clientId, "redirect_uri": redirectURL.absoluteString, "scope": Self.scope,
      "state": state, "nonce": nonce, "code_challenge": proof.challenge, "code_challenge_method": "S256",
    ]
    let query = values.map { FormEncoding.encode($0) + "=" + FormEncoding.encode($1) }.joined(separator: "&")
    let endpoint = metadata.authorizationEndpoint
    let text = endpoint.absoluteString + (endpoint.query == nil ? "?" : "&") + query
    return URL(string: text) ?? endpoint
  }

  /// What came of a URL that a browser was sent to.
  enum Outcome: Equatable, Sendable {
    /// It does not answer this request: of another, of an earlier one, or made up. The right one may still come.
    case foreign
    case code(String)
    case failed(KapeAuthError)
  }

  func outcome(of url: URL) -> Outcome {
    guard isRedirect(url), let values = Self.parameters(of: url), let state = values["state"],
      SecretMemory.areEqual(Array(state.utf8), Array(self.state.utf8))
    else { return .foreign }
    // RFC 9207, section 2.4: else a code of another issuer could be passed off as this one's.
    if let issuer = values["iss"] {
      guard issuer.utf8.elementsEqual(metadata.issuer.utf8) else {
        return .failed(.invalidResponse("it came back from another issuer, \(issuer)"))
      }
    } else if metadata.namesItself {
      return .failed(.invalidResponse("it came back without saying which issuer it is from"))
    }
    if let error = values["error"] {
      let reason = values["error_description"]
      return .failed(error == "access_denied" ? .denied : .refused(code: error, reason: reason))
    }
    guard let code = values["code"], !code.isEmpty else {
      return .failed(.invalidResponse("it came back without a code"))
    }
    return .code(code)
  }

  private func isRedirect(_ url: URL) -> Bool {
    func normal(_ path: String) -> String { path.isEmpty ? "/" : path }
    return url.scheme?.lowercased() == redirectURL.scheme?.lowercased()
      && url.host?.lowercased() == redirectURL.host?.lowercased() && url.port == redirectURL.port
      && normal(url.path) == normal(redirectURL.path)
  }

  /// nil when one is there twice: readers would not agree on which counts.
  private static func parameters(of url: URL) -> [String: String]? {
    guard let items = URLComponents(url: url, resolvingAgainstBaseURL: false)?.queryItems else { return nil }
    var values: [String: String] = [:]
    for item in items {
      guard values.updateValue(item.value ?? "", forKey: item.name) == nil else { return nil }
    }
    return values
  }
}
