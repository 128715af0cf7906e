/// A JSON Web Token (RFC 7519): claims that somebody has signed. Times are seconds since 1970, with fractions.
public struct JSONWebToken: Sendable {
  public let signature: JSONWebSignature
  public let claims: JSONNode

  public let issuer: String?
  public let subject: String?
  /// One or several (RFC 7519, section 4.1.3); empty when it names none.
  public let audience: [String]
  public let expiresAt: Double?
  public let notBefore: Double?
  public let issuedAt: Double?

  /// Reads it without believing any of it: for a token that is only passed on, and whose expiry one wants to know.
  public init(unverified text: String) throws(JSONWebTokenError) {
    signature = try JSONWebSignature(compact: text)
    do throws(JSONReader.Failure) {
      claims = try JSONReader.read(signature.payload)
    } catch {
      throw .malformed("the claims are no JSON: \(error)")
    }
    guard case .object(let members) = claims else { throw .malformed("the claims are no object") }
    issuer = try Self.string("iss", members)
    subject = try Self.string("sub", members)
    expiresAt = try Self.time("exp", members)
    notBefore = try Self.time("nbf", members)
    issuedAt = try Self.time("iat", members)
    switch members["aud"] {
    case nil: audience = []
    case .string(let one): audience = [one]
    case let several:
      guard let names = several?.strings else { throw .badClaim("aud") }
      audience = names
    }
  }

  /// Reads it, checks who has signed it, and whether it holds under the policy at this time.
  public init(
    _ text: String, keys: JSONWebKeySet, policy: JSONWebTokenPolicy, now: Double
  ) throws(JSONWebTokenError) {
    try self.init(unverified: text)
    try signature.verify(keys, allowing: policy.algorithms)
    try policy.check(self, now: now)
  }

  private static func string(_ name: String, _ members: [String: JSONNode]) throws(JSONWebTokenError) -> String? {
    guard let value = members[name] else { return nil }
    guard let text = value.string else { throw .badClaim(name) }
    return text
  }

  private static func time(_ name: String, _ members: [String: JSONNode]) throws(JSONWebTokenError) -> Double? {
    guard let value = members[name] else { return nil }
    // The years 1 to 9999, far beyond every clock, and exact to the second.
    guard let time = value.number, time.magnitude < 253_402_300_800 else { throw .badClaim(name) }
    return time
  }
}

/// What a token has to be, to be taken.
public struct JSONWebTokenPolicy: Sendable {
  public var issuer: String?
  /// One that the token's audience has to have.
  public var audience: String?
  public var algorithms: Set<SignatureAlgorithm>
  /// The types that are taken, in lower case, without `application/`; nil: each, and none at all.
  public var types: Set<String>?
  /// How far the clocks of issuer and verifier may differ, in seconds.
  public var leeway: Double
  public var requiresExpiry = true
  public var requiresIssueTime = false

  public init(
    issuer: String?, audience: String?, algorithms: Set<SignatureAlgorithm>, types: Set<String>? = nil,
    leeway: Double = 60
  ) {
    self.issuer = issuer
    self.audience = audience
    self.algorithms = algorithms
    self.types = types
    self.leeway = leeway
  }

  func check(_ token: JSONWebToken, now: Double) throws(JSONWebTokenError) {
    if let types {
      var type = token.signature.type?.lowercased()
      if let long = type, long.hasPrefix("application/") { type = String(long.dropFirst("application/".count)) }
      guard let type, types.contains(type) else { throw .wrongType(token.signature.type) }
    }
    if let issuer {
      guard let named = token.issuer else { throw .badClaim("iss") }
      guard isSame(named, issuer) else { throw .wrongIssuer(named) }
    }
    if let audience {
      guard !token.audience.isEmpty else { throw .badClaim("aud") }
      guard token.audience.contains(where: { isSame($0, audience) }) else { throw .wrongAudience(token.audience) }
    }
    if let expiresAt = token.expiresAt {
      guard now < expiresAt + leeway else { throw .expired }
    } else if requiresExpiry {
      throw .badClaim("exp")
    }
    if let notBefore = token.notBefore, now + leeway < notBefore { throw .notYetValid }
    if let issuedAt = token.issuedAt {
      guard now + leeway >= issuedAt else { throw .notYetValid }
    } else if requiresIssueTime {
      throw .badClaim("iat")
    }
  }
}

/// Byte by byte, as RFC 7515, section 5.3, asks for: to Swift, strings that differ in their composition are equal.
func isSame(_ one: String, _ other: String) -> Bool { one.utf8.elementsEqual(other.utf8) }
