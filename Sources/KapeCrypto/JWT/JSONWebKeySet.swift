/// Public keys as an issuer shows them (RFC 7517, section 5).
public struct JSONWebKeySet: Sendable {
  /// More keys than this, or a larger text, are refused: each is worth a signature check.
  public static let keyLimit = 64
  public static let sizeLimit = 1 << 18

  public struct Key: Sendable {
    public let identifier: String?
    public let key: SignatureKey

    public init(identifier: String?, key: SignatureKey) {
      self.identifier = identifier
      self.key = key
    }
  }

  public let keys: [Key]

  public init(_ keys: [Key]) { self.keys = keys }

  /// Keys of a kind that is not known here, or that are for something else than signatures, are passed over, as the RFC
  /// asks for; so are those that are no key.
  public init(parsing text: [UInt8]) throws(JSONWebTokenError) {
    guard text.count <= Self.sizeLimit else { throw .malformed("the key set is larger than 256 KiB") }
    let document: JSONNode
    do throws(JSONReader.Failure) {
      document = try JSONReader.read(text)
    } catch {
      throw .malformed("the key set is no JSON: \(error)")
    }
    guard let entries = document["keys"]?.array else { throw .malformed("the key set has no array of keys") }
    guard entries.count <= Self.keyLimit else { throw .malformed("more than \(Self.keyLimit) keys") }
    keys = entries.compactMap { Key($0) }
  }

  /// Those that may have made a signature. A token without a key identifier may be any key's.
  func candidates(_ identifier: String?, _ algorithm: SignatureAlgorithm) -> [SignatureKey] {
    keys.filter { key in
      guard key.key.algorithm == algorithm else { return false }
      guard let identifier else { return true }
      return key.identifier.map { isSame($0, identifier) } ?? false
    }.map(\.key)
  }
}

extension JSONWebKeySet.Key {
  /// One JSON Web Key (RFC 7517, section 4), with the parameters of RFC 7518, section 6, and RFC 8037, section 2.
  fileprivate init?(_ node: JSONNode) {
    guard node["use"] == nil || node["use"]?.string == "sig",
      node["key_ops"] == nil || node["key_ops"]?.strings?.contains("verify") == true,
      let parameters = PublicKeyParameters(node), let key = SignatureKey(parameters),
      node["alg"] == nil || node["alg"]?.string == key.algorithm.rawValue
    else { return nil }
    self.init(identifier: node["kid"]?.string, key: key)
  }
}

extension PublicKeyParameters {
  fileprivate init?(_ node: JSONNode) {
    func bytes(_ name: String) -> [UInt8]? { node[name]?.string.flatMap { Base64URL.decode($0) } }
    switch (node["kty"]?.string, node["crv"]?.string) {
    case ("RSA", nil):
      guard let modulus = bytes("n"), let exponent = bytes("e") else { return nil }
      self = .rsa(modulus: modulus, exponent: exponent)
    case ("EC", "P-256"):
      guard let x = bytes("x"), let y = bytes("y") else { return nil }
      self = .p256(x: x, y: y)
    case ("OKP", "Ed25519"):
      guard let x = bytes("x") else { return nil }
      self = .ed25519(x: x)
    default: return nil
    }
  }
}
