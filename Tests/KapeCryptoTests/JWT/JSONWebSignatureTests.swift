import KapeCrypto
import Testing

private let all = Set(SignatureAlgorithm.allCases)

private func part(_ text: String) -> String { Base64URL.encode(Array(text.utf8)) }

private func changed(_ token: String, header: String) -> String {
  part(header) + "." + token.split(separator: ".", maxSplits: 1)[1]
}

@Suite struct JSONWebSignatureTests {
  @Test(
    "RFC 7515 A.2, A.3, RFC 8037 A.4: the examples are taken, and only with their own keys",
    arguments: [
      (StandardTokens.rs256, StandardTokens.rsaKey), (StandardTokens.es256, StandardTokens.ecKey),
      (StandardTokens.eddsa, StandardTokens.edKey),
    ])
  func examples(_ token: String, _ key: String) throws {
    let signature = try JSONWebSignature(compact: token)
    try signature.verify(StandardTokens.keys(key), allowing: all)
    try signature.verify(
      StandardTokens.keys(StandardTokens.edKey, StandardTokens.rsaKey, StandardTokens.ecKey), allowing: all)
    let others = [StandardTokens.rsaKey, StandardTokens.ecKey, StandardTokens.edKey].filter { $0 != key }
    #expect(throws: JSONWebTokenError.unknownKey(nil)) {
      try signature.verify(StandardTokens.keys(others[0], others[1]), allowing: all)
    }
    let parts = token.split(separator: ".").map(String.init)
    let altered = [parts[0], part("altered"), parts[2]].joined(separator: ".")
    #expect(throws: JSONWebTokenError.wrongSignature) {
      try JSONWebSignature(compact: altered).verify(StandardTokens.keys(key), allowing: all)
    }
  }

  @Test("RFC 8037 A.4: the private key of A.1 makes this signature") func edSigning() throws {
    // PKCS #8 of an Ed25519 key: this prefix, and the 32 bytes of `d`.
    let prefix: [UInt8] = [0x30, 0x2E, 2, 1, 0, 0x30, 5, 6, 3, 0x2B, 0x65, 0x70, 4, 0x22, 4, 0x20]
    let d = try #require(Base64URL.decode("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A"))
    let key = try SigningKey(privateBytes: (prefix + d).span.bytes, .eddsa)
    let parts = StandardTokens.eddsa.split(separator: ".")
    let signature = try key.signature(of: Array(parts[0...1].joined(separator: ".").utf8))
    #expect(Base64URL.encode(signature) == parts[2])
  }

  @Test("RFC 7515 A.5, RFC 7519 6.1: `none` is refused, however it is spelt, with and without a signature")
  func none() throws {
    let keys = try StandardTokens.keys(StandardTokens.ecKey, StandardTokens.rsaKey, StandardTokens.edKey)
    #expect(throws: JSONWebTokenError.algorithmNotAllowed("none")) {
      try JSONWebSignature(compact: StandardTokens.unsecured).verify(keys, allowing: all)
    }
    for name in ["none", "None", "NONE", "nOnE", ""] {
      #expect(throws: JSONWebTokenError.algorithmNotAllowed(name)) {
        let token = changed(StandardTokens.es256, header: "{\"alg\":\"\(name)\"}")
        try JSONWebSignature(compact: token).verify(keys, allowing: all)
      }
    }
  }

  @Test("algorithm confusion: the key says what it is for, and a public key is never a shared secret")
  func confusion() throws {
    let keys = try StandardTokens.keys(StandardTokens.rsaKey)
    // RFC 7515 A.1; and a MAC made with the RSA key's public modulus.
    for token in [StandardTokens.hs256, forgedWithPublicKey()] {
      #expect(throws: JSONWebTokenError.algorithmNotAllowed("HS256")) {
        try JSONWebSignature(compact: token).verify(keys, allowing: all)
      }
    }
    for name in ["ES256", "EdDSA"] {
      #expect(throws: JSONWebTokenError.unknownKey(nil)) {
        let token = changed(StandardTokens.rs256, header: "{\"alg\":\"\(name)\"}")
        try JSONWebSignature(compact: token).verify(keys, allowing: all)
      }
    }
    #expect(throws: JSONWebTokenError.algorithmNotAllowed("RS256")) {
      try JSONWebSignature(compact: StandardTokens.rs256).verify(keys, allowing: [.es256, .eddsa])
    }
  }

  private func forgedWithPublicKey() -> String {
    let signed = part(#"{"alg":"HS256"}"#) + "." + part(#"{"sub":"x"}"#)
    let secret = Array(StandardTokens.rsaKey.utf8)
    return signed + "." + Base64URL.encode(SHA256.authenticate(Array(signed.utf8), key: secret))
  }

  @Test("a header that depends on an extension is refused (RFC 7515 4.1.11)") func critical() {
    for header in [#"{"alg":"ES256","crit":["b64"],"b64":false}"#, #"{"alg":"ES256","crit":[]}"#] {
      #expect(throws: JSONWebTokenError.criticalExtension) {
        try JSONWebSignature(compact: changed(StandardTokens.es256, header: header))
      }
    }
  }

  @Test(
    "what is not a compact signature is refused",
    arguments: [
      "", ".", "..", "...", "a.b", "a.b.c.d", "e30.e30.", "eyJhbGciOjd9.e30.", "W10.e30.",
      "eyJhbGciOiJFUzI1NiJ9.e30=.AA", "eyJhbGciOiJFUzI1NiJ9.e30.A", "eyJhbGciOiJFUzI1NiJ9.e3 0.AA",
      "eyJhbGciOiJFUzI1NiJ9 .e30.AA", "eyJhbGciOiJFUzI1NiIsImFsZyI6Im5vbmUifQ.e30.AA", "ümlaut.e30.AA",
      // RFC 7519, A.1: an encrypted one has five parts.
      "eyJhbGciOiJSU0ExXzUiLCJlbmMiOiJBMTI4Q0JDLUhTMjU2In0.QR1Owv2ug2WyPBnb.AxY8DCtDaGlsbGljb3RoZQ.MKOl.fiK5",
    ])
  func malformed(_ text: String) {
    let error = #expect(throws: JSONWebTokenError.self) { try JSONWebSignature(compact: text) }
    guard case .malformed = error else {
      Issue.record("\(String(describing: error))")
      return
    }
  }

  @Test("a token of 64 KiB is read, a larger one is not") func size() throws {
    let rest = JSONWebSignature.sizeLimit - "eyJhbGciOiJFUzI1NiJ9..AA".utf8.count
    _ = try JSONWebSignature(compact: "eyJhbGciOiJFUzI1NiJ9." + String(repeating: "A", count: rest) + ".AA")
    #expect(throws: JSONWebTokenError.malformed("larger than 64 KiB")) {
      try JSONWebSignature(compact: "eyJhbGciOiJFUzI1NiJ9." + String(repeating: "A", count: rest + 1) + ".AA")
    }
  }
}
