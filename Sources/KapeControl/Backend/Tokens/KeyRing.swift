import KapeCrypto

/// The keys that sign tokens, one at a time for each algorithm. The next one is published before it signs, and one that
/// has been replaced is good for what it signed until its overlap has passed; then it is forgotten.
struct KeyRing {
  struct Entry: Sendable {
    let kid: String
    let key: SigningKey
    /// Seconds since 1970.
    let activeFrom: Int64
  }

  let lifetime: Int64
  let overlap: Int64
  /// By when they become active.
  private(set) var entries: [SignatureAlgorithm: [Entry]] = [:]

  init(lifetime: Int64, overlap: Int64) {
    self.lifetime = lifetime
    self.overlap = overlap
  }

  mutating func add(_ entry: Entry) {
    entries[entry.key.algorithm, default: []].append(entry)
    entries[entry.key.algorithm]?.sort { $0.activeFrom < $1.activeFrom }
  }

  /// The one that signs; nil when there is none yet.
  func active(_ algorithm: SignatureAlgorithm, at now: Int64) -> Entry? {
    entries[algorithm]?.last { $0.activeFrom <= now }
  }

  /// When the key that is wanted next is to become active; nil while there is one already.
  func due(_ algorithm: SignatureAlgorithm, at now: Int64) -> Int64? {
    guard let newest = entries[algorithm]?.last else { return now }
    let end = newest.activeFrom + lifetime
    guard now >= end - min(overlap, lifetime) else { return nil }
    return max(end, now)
  }

  /// What is to be verified with: not yet active, active, or replaced for less than the overlap.
  func accepted(at now: Int64) -> [Entry] {
    entries.values.flatMap { ring in
      ring.indices.filter { !isSpent(ring, $0, at: now) }.map { ring[$0] }
    }.sorted { ($0.activeFrom, $0.kid) < ($1.activeFrom, $1.kid) }
  }

  func accepted(kid: String, at now: Int64) -> Entry? { accepted(at: now).first { $0.kid == kid } }

  /// Takes out what is good for nothing any more; returns the names.
  mutating func removeSpent(at now: Int64) -> [String] {
    var removed: [String] = []
    for (algorithm, ring) in entries {
      let spent = ring.indices.filter { isSpent(ring, $0, at: now) }.map { ring[$0].kid }
      removed += spent
      entries[algorithm] = ring.filter { !spent.contains($0.kid) }
    }
    return removed
  }

  private func isSpent(_ ring: [Entry], _ index: Int, at now: Int64) -> Bool {
    index + 1 < ring.count && now >= ring[index + 1].activeFrom + overlap
  }
}

extension KeyRing.Entry {
  /// As the key set shows it (RFC 7517).
  var publicJSON: JSON {
    let common: [String: JSON] = [
      "kid": .string(kid), "use": "sig", "alg": .string(key.algorithm.rawValue),
    ]
    let special: [String: JSON] =
      switch key.publicKey.parameters {
      case .p256(let x, let y):
        ["kty": "EC", "crv": "P-256", "x": .string(Base64URL.encode(x)), "y": .string(Base64URL.encode(y))]
      case .ed25519(let x): ["kty": "OKP", "crv": "Ed25519", "x": .string(Base64URL.encode(x))]
      case .rsa(let modulus, let exponent):
        ["kty": "RSA", "n": .string(Base64URL.encode(modulus)), "e": .string(Base64URL.encode(exponent))]
      }
    return .object(common.merging(special) { $1 })
  }
}
