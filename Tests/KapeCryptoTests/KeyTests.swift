import KapeCrypto
import Testing

private let privateText = "AKsOlH9cqm9TBCCG0B7mndns9sq6YEaab9NOC52g+kg="
private let publicText = "8TXhAVhUfR6Zd5E5oMLzXP4rXJpbLA3Y0067iYFbgmI="
private let privateHex = "00ab0e947f5caa6f53042086d01ee69dd9ecf6caba60469a6fd34e0b9da0fa48"

private func privateKey(hex text: String) -> PrivateKey? { PrivateKey(hex: Array(text.utf8).span.bytes) }
private func publicKey(_ bytes: [UInt8]) -> PublicKey? { PublicKey(bytes: bytes.span.bytes) }

private func hex(_ key: PrivateKey) -> String {
  key.withUnsafeBytes { bytes in
    bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }
}

private func text(_ fill: (inout SecretBuffer) -> Void) -> String {
  var buffer = SecretBuffer()
  fill(&buffer)
  return buffer.withBytes { bytes in bytes.withUnsafeBytes { String(decoding: $0, as: UTF8.self) } }
}

@Suite struct KeyTests {
  @Test func aPrivateKeyGivesThePublicKeyOfX25519() throws {
    let key = try #require(PrivateKey(base64: privateText))
    #expect(key.publicKey.base64 == publicText)
    #expect(hex(key) == privateHex)
  }

  /// RFC 7748 section 6.1: Alice's and Bob's keys.
  @Test(
    arguments: [
      (
        "77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a",
        "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a"
      ),
      (
        "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb",
        "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f"
      ),
    ])
  func thePublicKeysOfRFC7748(_ secret: String, _ shown: String) throws {
    let key = try #require(privateKey(hex: secret))
    #expect(key.publicKey.hex == shown)
  }

  @Test func textFormsComeBackAsTheyWent() throws {
    for _ in 0..<200 {
      let key = PrivateKey()
      let base64 = text { $0.append(base64: key) }
      let hexadecimal = text { $0.append(hex: key) }
      #expect(base64.utf8.count == 44 && base64.hasSuffix("="))
      #expect(PrivateKey(base64: base64) == key)
      #expect(privateKey(hex: hexadecimal) == key)
      #expect(privateKey(hex: hexadecimal.uppercased()) == key)
      #expect(PublicKey(base64: key.publicKey.base64) == key.publicKey)
      #expect(PublicKey(hex: key.publicKey.hex) == key.publicKey)
      let shared = PresharedKey()
      #expect(PresharedKey(base64: text { $0.append(base64: shared) }) == shared)
    }
  }

  @Test(
    arguments: [
      "", "=", String(privateText.dropLast()), privateText + "=", " " + privateText, privateText + "\n",
      // the last character before '=' has bits that belong to no byte
      "AKsOlH9cqm9TBCCG0B7mndns9sq6YEaab9NOC52g+kh=",
      // 33 bytes, 31 bytes
      "AKsOlH9cqm9TBCCG0B7mndns9sq6YEaab9NOC52g+khA", "AKsOlH9cqm9TBCCG0B7mndns9sq6YEaab9NOC52g+g==",
      // the alphabet for URLs, characters of no alphabet
      "AKsOlH9cqm9TBCCG0B7mndns9sq6YEaab9NOC52g-kg=", "AKsOlH9cqm9TBCCG0B7mndns9sq6YEaab9NO\0052g+kg=",
    ])
  func whatIsNot32BytesOfBase64IsRefused(_ text: String) {
    #expect(PrivateKey(base64: text) == nil)
    #expect(PresharedKey(base64: text) == nil)
    #expect(PublicKey(base64: text) == nil)
  }

  @Test(arguments: ["", "00", privateHex + "0", String(privateHex.dropLast()) + "g", String(privateHex.dropLast(2))])
  func whatIsNot64DigitsIsRefused(_ text: String) {
    #expect(privateKey(hex: text) == nil)
    #expect(PublicKey(hex: text) == nil)
  }

  @Test func newKeysAreClampedAndDiffer() {
    var seen: Set<PublicKey> = []
    for _ in 0..<100 {
      let key = PrivateKey()
      key.withUnsafeBytes { bytes in
        #expect(bytes[0] & 7 == 0)
        #expect(bytes[31] & 0xC0 == 0x40)
      }
      #expect(seen.insert(key.publicKey).inserted)
    }
  }

  @Test func zeroIsNoKey() throws {
    #expect(PrivateKey.zero.isZero)
    #expect(PresharedKey.zero.isZero)
    #expect(!PrivateKey().isZero)
    #expect(publicKey([UInt8](repeating: 0, count: 32))?.isZero == true)
    #expect(publicKey([UInt8](repeating: 0, count: 31)) == nil)
  }

  /// Whatever a program does to show a value, the bytes do not appear.
  @Test func secretsAreNotShown() throws {
    struct Holder {
      let key: PrivateKey
      let shared: PresharedKey
    }
    let key = try #require(PrivateKey(base64: privateText))
    let shared = try #require(PresharedKey(base64: privateText))
    var dumped = ""
    dump(Holder(key: key, shared: shared), to: &dumped)
    let shown = [
      "\(key)", "\(shared)", String(reflecting: key), String(reflecting: shared), String(describing: [key]),
      "\(Holder(key: key, shared: shared))", String(reflecting: Holder(key: key, shared: shared)), dumped,
    ]
    for text in shown {
      #expect(!text.contains("AKsO"))
      #expect(!text.lowercased().contains("00ab"))
      #expect(!text.contains("171, 14"))
      #expect(text.contains("hidden") || text.contains("Key"))
    }
    #expect(Mirror(reflecting: key).children.isEmpty)
    #expect(Mirror(reflecting: shared).children.isEmpty)
  }

  @Test func equalityOfOneKeyWithItself() throws {
    let key = PrivateKey()
    let copy = key
    #expect(key == copy)
    #expect(key != PrivateKey())
  }
}
