import KapeCrypto
import Testing

private let now = 1_800_000_000.0
private let issuer = "https://id.example.com"

@Suite struct JSONWebTokenTests {
  private let key: SigningKey
  private let keys: JSONWebKeySet

  init() throws {
    key = try SigningKey(generating: .eddsa)
    keys = JSONWebKeySet([.init(identifier: "k", key: key.publicKey)])
  }

  private func token(_ claims: String, header: String = #"{"alg":"EdDSA","kid":"k","typ":"JWT"}"#) throws -> String {
    let signed = Base64URL.encode(Array(header.utf8)) + "." + Base64URL.encode(Array(claims.utf8))
    return signed + "." + Base64URL.encode(try key.signature(of: Array(signed.utf8)))
  }

  private func check(
    _ claims: String, header: String = #"{"alg":"EdDSA","kid":"k","typ":"JWT"}"#, at time: Double = now,
    _ change: (inout JSONWebTokenPolicy) -> Void = { _ in }
  ) throws {
    var policy = JSONWebTokenPolicy(issuer: issuer, audience: "app", algorithms: [.eddsa])
    change(&policy)
    _ = try JSONWebToken(token(claims, header: header), keys: keys, policy: policy, now: time)
  }

  private func claims(_ times: String, iss: String = issuer, aud: String = "\"app\"") -> String {
    "{\"iss\":\"\(iss)\",\"aud\":\(aud),\(times)}"
  }

  @Test("RFC 7515 A.2 as a token (RFC 7519 3.1): its claims, and its time") func example() throws {
    let keys = try StandardTokens.keys(StandardTokens.rsaKey)
    let policy = JSONWebTokenPolicy(issuer: "joe", audience: nil, algorithms: [.rs256], leeway: 0)
    let token = try JSONWebToken(StandardTokens.rs256, keys: keys, policy: policy, now: 1_300_819_379)
    #expect(token.issuer == "joe" && token.expiresAt == 1_300_819_380 && token.audience == [])
    #expect(token.claims["http://example.com/is_root"] == .bool(true))
    #expect(throws: JSONWebTokenError.expired) {
      try JSONWebToken(StandardTokens.rs256, keys: keys, policy: policy, now: 1_300_819_380)
    }
  }

  @Test("exp, nbf and iat, to the second around the leeway of 60 s") func times() throws {
    try check(claims("\"exp\":\(Int(now) - 59)"))
    #expect(throws: JSONWebTokenError.expired) { try check(claims("\"exp\":\(Int(now) - 60)")) }
    #expect(throws: JSONWebTokenError.badClaim("exp")) { try check(claims("\"iat\":0")) }
    try check(claims("\"iat\":0")) { $0.requiresExpiry = false }
    let exp = "\"exp\":\(Int(now) + 600)"
    try check(claims("\(exp),\"nbf\":\(Int(now) + 60)"))
    #expect(throws: JSONWebTokenError.notYetValid) { try check(claims("\(exp),\"nbf\":\(Int(now) + 61)")) }
    try check(claims("\(exp),\"iat\":\(Int(now) + 60)"))
    #expect(throws: JSONWebTokenError.notYetValid) { try check(claims("\(exp),\"iat\":\(Int(now) + 61)")) }
    #expect(throws: JSONWebTokenError.badClaim("iat")) { try check(claims(exp)) { $0.requiresIssueTime = true } }
    #expect(throws: JSONWebTokenError.expired) { try check(claims("\"exp\":\(now - 0.5)")) { $0.leeway = 0 } }
    try check(claims("\"exp\":\(now + 0.5)")) { $0.leeway = 0 }
  }

  @Test("issuer and audience, byte by byte") func whose() throws {
    let exp = "\"exp\":\(Int(now) + 600)"
    try check(claims(exp, aud: "[\"other\",\"app\"]"))
    #expect(throws: JSONWebTokenError.wrongAudience(["other"])) { try check(claims(exp, aud: "\"other\"")) }
    #expect(throws: JSONWebTokenError.wrongAudience(["APP", "app "])) {
      try check(claims(exp, aud: "[\"APP\",\"app \"]"))
    }
    #expect(throws: JSONWebTokenError.badClaim("aud")) { try check("{\"iss\":\"\(issuer)\",\(exp)}") }
    #expect(throws: JSONWebTokenError.badClaim("aud")) { try check(claims(exp, aud: "[]")) }
    #expect(throws: JSONWebTokenError.wrongIssuer(issuer + "/")) { try check(claims(exp, iss: issuer + "/")) }
    #expect(throws: JSONWebTokenError.badClaim("iss")) { try check("{\"aud\":\"app\",\(exp)}") }
    let composed = "caf\u{E9}"
    let decomposed = "cafe\u{301}"
    #expect(composed == decomposed)
    #expect(throws: JSONWebTokenError.wrongIssuer(decomposed)) {
      try check(claims(exp, iss: decomposed)) { $0.issuer = composed }
    }
  }

  @Test("a token for something else is told by its type (RFC 8725, section 3.11)") func types() throws {
    let claims = claims("\"exp\":\(Int(now) + 600)")
    for type in ["at+jwt", "application/at+jwt", "AT+JWT"] {
      try check(claims, header: "{\"alg\":\"EdDSA\",\"typ\":\"\(type)\"}") { $0.types = ["at+jwt"] }
    }
    #expect(throws: JSONWebTokenError.wrongType("JWT")) { try check(claims) { $0.types = ["at+jwt"] } }
    #expect(throws: JSONWebTokenError.wrongType(nil)) {
      try check(claims, header: #"{"alg":"EdDSA"}"#) { $0.types = ["at+jwt"] }
    }
  }

  @Test(
    "claims of another type are refused",
    arguments: [
      ("exp", "\"1800000000\""), ("exp", "null"), ("exp", "1e300"), ("exp", "true"), ("nbf", "[]"), ("iat", "{}"),
      ("iss", "7"), ("sub", "[\"a\"]"), ("aud", "7"), ("aud", "[1]"), ("aud", "{}"), ("aud", "null"),
    ])
  func wrongTypes(_ name: String, _ value: String) throws {
    let text = try token("{\"\(name)\":\(value)}")
    #expect(throws: JSONWebTokenError.badClaim(name)) { try JSONWebToken(unverified: text) }
  }

  @Test("claims that are no object are refused", arguments: ["", "[]", "7", "null", "{", "{\"exp\":1,\"exp\":2}"])
  func noClaims(_ text: String) throws {
    let text = try token(text)
    #expect(throws: JSONWebTokenError.self) { try JSONWebToken(unverified: text) }
  }

  @Test("the signature is checked before any claim") func order() throws {
    let other = try SigningKey(generating: .eddsa)
    let set = JSONWebKeySet([.init(identifier: "k", key: other.publicKey)])
    let policy = JSONWebTokenPolicy(issuer: issuer, audience: "app", algorithms: [.eddsa])
    let text = try token("{\"iss\":\"x\",\"exp\":1}")
    #expect(throws: JSONWebTokenError.wrongSignature) { try JSONWebToken(text, keys: set, policy: policy, now: now) }
  }
}

@Suite struct ProofKeyTests {
  @Test("RFC 7636 appendix B") func example() throws {
    let key = try #require(ProofKey(verifier: "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"))
    #expect(key.challenge == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM")
  }

  @Test("a new one has 256 bits, and no two are the same") func fresh() {
    let keys = (0..<100).map { _ in ProofKey().verifier }
    #expect(Set(keys).count == 100)
    #expect(keys.allSatisfy { $0.utf8.count == 43 && ProofKey(verifier: $0) != nil })
  }

  @Test("a verifier has 43 to 128 characters that are not reserved (RFC 7636 4.1)") func form() {
    #expect(ProofKey(verifier: String(repeating: "a", count: 42)) == nil)
    #expect(ProofKey(verifier: String(repeating: "~", count: 128)) != nil)
    #expect(ProofKey(verifier: String(repeating: "a", count: 129)) == nil)
    for character in ["+", "/", "=", " ", "é", "%"] {
      #expect(ProofKey(verifier: String(repeating: character, count: 43)) == nil)
    }
  }
}
