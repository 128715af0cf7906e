import KapeCrypto
import Testing

@Suite struct JSONWebKeySetTests {
  @Test("RFC 7517 A.1: the key for encryption is passed over, the other one is there") func example() throws {
    let set = try JSONWebKeySet(parsing: Array(StandardTokens.keySet.utf8))
    #expect(set.keys.map(\.identifier) == ["2011-04-29"])
    #expect(set.keys.first?.key.algorithm == .rs256)
    guard case .rsa(let modulus, let exponent) = set.keys.first?.key.parameters else {
      Issue.record("no RSA key")
      return
    }
    #expect(modulus.count == 256 && exponent == [1, 0, 1])
  }

  private func kept(_ changes: String...) throws -> Int {
    let key = String(StandardTokens.ecKey.dropLast()) + "," + changes.joined(separator: ",") + "}"
    return try StandardTokens.keys(key).keys.count
  }

  @Test("what a key says that it is for is heeded") func purposes() throws {
    #expect(try kept(#""use":"sig""#) == 1)
    #expect(try kept(#""use":"enc""#) == 0)
    #expect(try kept(#""key_ops":["verify"]"#) == 1)
    #expect(try kept(#""key_ops":["encrypt"]"#) == 0)
    #expect(try kept(#""key_ops":7"#) == 0)
    #expect(try kept(#""alg":"ES256""#) == 1)
    #expect(try kept(#""alg":"RS256""#) == 0)
    #expect(try kept(#""x5c":["AA"],"ext":true"#) == 1)
  }

  @Test(
    "a key that is none is passed over (RFC 7517, section 5), and the next is taken",
    arguments: [
      #"{"kty":"oct","k":"AAAA"}"#, #"{"kty":"EC","crv":"P-384","x":"AA","y":"AA"}"#, "{}", "7", "null", "[]",
      #"{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}"#, #"{"kty":"RSA","n":"AQAB","e":"AQAB"}"#,
      #"{"kty":"OKP","crv":"X25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#,
      #"{"kty":"OKP","crv":"Ed25519","x":"11qY"}"#, #"{"kty":"OKP","crv":"Ed25519"}"#,
      #"{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU"}"#,
    ])
  func notKeys(_ key: String) throws {
    #expect(try StandardTokens.keys(key, StandardTokens.edKey).keys.map(\.key.algorithm) == [.eddsa])
  }

  @Test(
    "what is no key set is refused",
    arguments: ["", "[]", "{}", #"{"keys":{}}"#, #"{"keys":[]"#, #"{"keys":[],"keys":[]}"#])
  func notSets(_ text: String) {
    #expect(throws: JSONWebTokenError.self) { try JSONWebKeySet(parsing: Array(text.utf8)) }
  }

  @Test("64 keys are read, more are refused, and so is a text of more than 256 KiB") func bounds() throws {
    func set(_ count: Int) throws -> JSONWebKeySet {
      let keys = Array(repeating: StandardTokens.edKey, count: count).joined(separator: ",")
      return try JSONWebKeySet(parsing: Array("{\"keys\":[\(keys)]}".utf8))
    }
    #expect(try set(64).keys.count == 64)
    #expect(throws: JSONWebTokenError.self) { try set(65) }
    let long = "{\"keys\":[]" + String(repeating: " ", count: 1 << 18) + "}"
    #expect(throws: JSONWebTokenError.self) { try JSONWebKeySet(parsing: Array(long.utf8)) }
  }

  @Test("the key identifier chooses; one that is not there is named, so that a newer set can be asked for")
  func identifiers() throws {
    let key = try SigningKey(generating: .es256)
    let other = try SigningKey(generating: .es256)
    let set = JSONWebKeySet([
      .init(identifier: "a", key: key.publicKey), .init(identifier: "b", key: other.publicKey),
      .init(identifier: nil, key: other.publicKey),
    ])
    func verify(_ header: String, _ signer: SigningKey) throws {
      let signed = Base64URL.encode(Array(header.utf8)) + ".e30"
      let signature = Base64URL.encode(try signer.signature(of: Array(signed.utf8)))
      try JSONWebSignature(compact: signed + "." + signature).verify(set, allowing: [.es256])
    }
    try verify(#"{"alg":"ES256","kid":"a"}"#, key)
    try verify(#"{"alg":"ES256","kid":"b"}"#, other)
    try verify(#"{"alg":"ES256"}"#, key)
    #expect(throws: JSONWebTokenError.wrongSignature) { try verify(#"{"alg":"ES256","kid":"b"}"#, key) }
    #expect(throws: JSONWebTokenError.unknownKey("c")) { try verify(#"{"alg":"ES256","kid":"c"}"#, key) }
  }
}
