import Foundation
import KapeCrypto

/// Who has signed in, as the issuer has signed it (OpenID Connect Core 1.0, section 3.1.3.7).
struct IDToken: Equatable, Sendable {
  var subject: String
  var email: String?
  var name: String?

  struct Expectation: Sendable {
    var issuer: String
    var clientId: String
    /// nil: after a refresh, which has none of its own.
    var nonce: String?
    /// After a refresh: the same as before.
    var subject: String?
    var accessToken: String
  }

  /// - Throws: `JSONWebTokenError`.
  init(
    _ text: String, keys: JSONWebKeySet, expected: Expectation, now: Date
  ) throws(JSONWebTokenError) {
    var policy = JSONWebTokenPolicy(
      issuer: expected.issuer, audience: expected.clientId, algorithms: [.rs256, .es256, .eddsa])
    policy.requiresIssueTime = true
    let token = try JSONWebToken(text, keys: keys, policy: policy, now: now.timeIntervalSince1970)
    guard let subject = token.subject, !subject.isEmpty else { throw .badClaim("sub") }
    if let before = expected.subject {
      guard subject.utf8.elementsEqual(before.utf8) else { throw .badClaim("sub") }
    }
    // A token for several has to say to whom it was issued, and that has to be us.
    let party = token.claims["azp"]
    guard party == nil ? token.audience.count == 1 : party?.string == expected.clientId else { throw .badClaim("azp") }
    if let nonce = expected.nonce {
      guard let named = token.claims["nonce"]?.string, SecretMemory.areEqual(Array(named.utf8), Array(nonce.utf8))
      else { throw .badClaim("nonce") }
    }
    try Self.checkHash(token, expected.accessToken)
    self.subject = subject
    email = token.claims["email"]?.string
    name = token.claims["name"]?.string
  }

  /// Section 3.1.3.6: the left half of the hash that the signature uses; of Ed25519, whose hash is not to be had apart,
  /// it is not checked (the claim may be missing in this flow).
  private static func checkHash(_ token: JSONWebToken, _ accessToken: String) throws(JSONWebTokenError) {
    guard let claim = token.claims["at_hash"], token.signature.algorithmName != SignatureAlgorithm.eddsa.rawValue else {
      return
    }
    let half = Array(SHA256.hash(Array(accessToken.utf8)).prefix(16))
    guard claim.string == Base64URL.encode(half) else { throw .badClaim("at_hash") }
  }
}
