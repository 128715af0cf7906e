import KapeCrypto
import Testing

/// RFC 7515, appendices A.2 and A.3: a header with the algorithm alone, and the same claims.
private let claims =
  "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"

private struct Vector: Sendable {
  let header: String
  let parameters: PublicKeyParameters
  let signature: String

  var message: [UInt8] { Array("\(header).\(claims)".utf8) }
}

private func bytes(_ text: String) -> [UInt8] { Base64URL.decode(text) ?? [] }

private let vectors = [
  Vector(
    header: "eyJhbGciOiJFUzI1NiJ9",
    parameters: .p256(
      x: bytes("f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU"), y: bytes("x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0")),
    signature: "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"),
  Vector(
    header: "eyJhbGciOiJSUzI1NiJ9",
    parameters: .rsa(
      modulus: bytes(
        "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-p"
          + "CgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2Ca"
          + "pHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb"
          + "54h4FRWyuXpoQ"), exponent: bytes("AQAB")),
    signature:
      "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdb"
      + "F9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_d"
      + "O--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_I"
      + "oypGlUPQGe77Rw"),
]

@Suite struct SignatureTests {
  @Test(arguments: vectors.indices)
  func signaturesOfTheStandardAreValidAndNoOther(_ index: Int) throws {
    let vector = vectors[index]
    let key = try #require(SignatureKey(vector.parameters))
    let signature = bytes(vector.signature)
    #expect(key.isValid(signature, of: vector.message))
    #expect(!key.isValid(signature, of: vector.message + [0]))
    for position in [0, signature.count / 2, signature.count - 1] {
      var changed = signature
      changed[position] ^= 1
      #expect(!key.isValid(changed, of: vector.message))
    }
    #expect(!key.isValid(Array(signature.dropLast()), of: vector.message))
    #expect(!key.isValid(signature + [0], of: vector.message))
    #expect(!key.isValid([], of: vector.message))
    #expect(!key.isValid(bytes(vectors[1 - index].signature), of: vector.message))
  }

  @Test(arguments: SignatureAlgorithm.allCases)
  func whatOneKeySignsThatKeyAloneVerifies(_ algorithm: SignatureAlgorithm) throws {
    let message = Array("message".utf8)
    let key = try SigningKey(generating: algorithm)
    let other = try SigningKey(generating: algorithm)
    let signature = try key.signature(of: message)
    #expect(key.publicKey.algorithm == algorithm)
    #expect(key.publicKey.isValid(signature, of: message))
    #expect(!other.publicKey.isValid(signature, of: message))
    let stored = try key.privateBytes()
    let loaded = try stored.withBytes { bytes in try SigningKey(privateBytes: bytes, algorithm) }
    #expect(loaded.publicKey.parameters == key.publicKey.parameters)
    #expect(key.publicKey.isValid(try loaded.signature(of: message), of: message))
  }

  @Test func aKeyOfAnotherKindIsRefused() throws {
    let stored = try SigningKey(generating: .es256).privateBytes()
    stored.withBytes { bytes in
      #expect(throws: SigningKey.Failure.notAKey) { try SigningKey(privateBytes: bytes, .rs256) }
      #expect(throws: SigningKey.Failure.notAKey) {
        try SigningKey(privateBytes: bytes.extracting(0..<20), .es256)
      }
    }
  }

  @Test func publicKeysThatAreNoneAreRefused() {
    guard case .p256(let x, let y) = vectors[0].parameters, case .rsa(let n, let e) = vectors[1].parameters else {
      return
    }
    #expect(SignatureKey(.p256(x: x, y: x)) == nil, "not on the curve")
    #expect(SignatureKey(.p256(x: Array(x.dropLast()), y: y)) == nil)
    #expect(SignatureKey(.p256(x: [], y: [])) == nil)
    #expect(SignatureKey(.rsa(modulus: Array(n[..<128]), exponent: e)) == nil, "1,024 bits")
    #expect(SignatureKey(.rsa(modulus: n, exponent: [2])) == nil)
    #expect(SignatureKey(.rsa(modulus: n, exponent: [1])) == nil)
    #expect(SignatureKey(.rsa(modulus: n, exponent: [])) == nil)
    #expect(SignatureKey(.rsa(modulus: Array(repeating: 255, count: 1025), exponent: e)) == nil, "too long")
  }
}

@Suite struct Base64URLTests {
  @Test func theWayThereAndBack() {
    for size in 0..<70 {
      let bytes = (0..<size).map { UInt8(truncatingIfNeeded: $0 * 89 + 251) }
      let text = Base64URL.encode(bytes)
      #expect(!text.contains { "+/=".contains($0) })
      #expect(Base64URL.decode(text) == bytes)
    }
    #expect(Base64URL.encode([0xFB, 0xFF]) == "-_8")
  }

  @Test(arguments: ["=", "-_8=", "+/8", "-_9", "A", "-_ 8", "-_8\n", "é"])
  func whatEncodingNeverMakesIsRefused(_ text: String) { #expect(Base64URL.decode(text) == nil) }
}

@Suite struct SHA256Tests {
  @Test func knownAnswers() {
    func hex(_ bytes: [UInt8]) -> String {
      bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
    // FIPS 180-4; RFC 4231, cases 1 and 6 (a key longer than a block).
    #expect(
      hex(SHA256.hash(Array("abc".utf8))) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    #expect(hex(SHA256.hash([])) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
    #expect(
      hex(SHA256.authenticate(Array("Hi There".utf8), key: Array(repeating: 0x0B, count: 20)))
        == "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7")
    #expect(
      hex(
        SHA256.authenticate(
          Array("Test Using Larger Than Block-Size Key - Hash Key First".utf8), key: Array(repeating: 0xAA, count: 131))
      )
        == "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54")
  }

  @Test func secretsAreComparedAndRandom() {
    #expect(SecretMemory.areEqual([1, 2], [1, 2]))
    #expect(!SecretMemory.areEqual([1, 2], [1, 3]))
    #expect(!SecretMemory.areEqual([1, 2], [1]))
    #expect(SecretMemory.areEqual([], []))
    #expect(SecretMemory.randomBytes(32) != SecretMemory.randomBytes(32))
    #expect(SecretMemory.randomBytes(0) == [])
  }
}
