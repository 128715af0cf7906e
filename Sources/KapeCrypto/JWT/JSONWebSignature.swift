/// A JSON Web Signature in its compact form (RFC 7515, section 3.1), read but not believed.
public struct JSONWebSignature: Sendable {
  /// More is not read.
  public static let sizeLimit = 1 << 16

  public let header: JSONNode
  /// `alg`, as it is there.
  public let algorithmName: String
  /// `kid`.
  public let keyIdentifier: String?
  /// `typ`.
  public let type: String?
  /// What it says, which is worth nothing before `verify`.
  public let payload: [UInt8]
  private let signed: [UInt8]
  private let signature: [UInt8]

  public init(compact text: String) throws(JSONWebTokenError) {
    guard text.utf8.count <= Self.sizeLimit else { throw .malformed("larger than 64 KiB") }
    let parts = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard parts.count == 3 else { throw .malformed("not three parts") }
    guard let head = Base64URL.decode(Substring(parts[0])), let payload = Base64URL.decode(Substring(parts[1])),
      let signature = Base64URL.decode(Substring(parts[2]))
    else { throw .malformed("not base64url") }
    do throws(JSONReader.Failure) {
      header = try JSONReader.read(head)
    } catch {
      throw .malformed("the header is no JSON: \(error)")
    }
    guard let algorithm = header["alg"]?.string else { throw .malformed("the header names no algorithm") }
    // None is known here; `b64` (RFC 7797), which changes what is signed, has to be named there.
    guard header["crit"] == nil else { throw .criticalExtension }
    algorithmName = algorithm
    keyIdentifier = header["kid"]?.string
    type = header["typ"]?.string
    self.payload = payload
    self.signature = signature
    signed = Array(text.utf8.prefix(text.utf8.count - parts[2].count - 1))
  }

  /// Returns when a key of the set has signed it, with one of these algorithms. Which one is used is for the key to say,
  /// never for the token alone: a token that names another one than its key is for is refused.
  public func verify(
    _ keys: JSONWebKeySet, allowing algorithms: Set<SignatureAlgorithm>
  ) throws(JSONWebTokenError) {
    guard let algorithm = SignatureAlgorithm(rawValue: algorithmName), algorithms.contains(algorithm) else {
      throw .algorithmNotAllowed(algorithmName)
    }
    let candidates = keys.candidates(keyIdentifier, algorithm)
    guard !candidates.isEmpty else { throw .unknownKey(keyIdentifier) }
    guard candidates.contains(where: { $0.isValid(signature, of: signed) }) else { throw .wrongSignature }
  }
}
