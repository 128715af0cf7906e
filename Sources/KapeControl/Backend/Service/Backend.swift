package import KapeControl
import KapeCrypto

/// The backend without its listeners: one request in, one answer out. Its database is used on its own queue, and nothing
/// else waits there.
package actor Backend {
  let settings: BackendSettings
  let state: StateDirectory
  let clock: any BackendClock
  let log: EventLog
  let issuer: String
  let database: Database
  let hasher: PasswordHasher
  /// Seals the form to sign in with.
  let formKey: [UInt8]
  /// Whoever verifies for a server shows it.
  let verifierKey: [UInt8]
  var ring: KeyRing
  var limiter = RateLimiter()
  /// Content of the files that the settings name, by path.
  let texts: [String: String]
  /// By the server's name.
  let links: [String: InterfaceLink]
  /// The address that a server's newest peer was given.
  var lastAddresses: [String: UInt32] = [:]
  /// When peers were last heard of, in seconds since 1970, as of the last sweep.
  var handshakes: [String: [PublicKey: Int64]] = [:]
  /// Since the last sweep; at first there may be.
  var hasNewEvents = true
  /// Passwords that wait to be compared, or are.
  var hashing = 0

  private let executor: QueueExecutor
  package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// A file that the settings name cannot be read.
  package struct Missing: Error, CustomStringConvertible {
    package let description: String
  }

  /// Opens the database of `state`, or makes it, with keys and secrets. What the settings name is put in by `seed`.
  package init(
    settings: BackendSettings, state: StateDirectory, issuer: String, clock: any BackendClock, log: EventLog,
    passwordCost: PasswordHasher.Cost = .usual
  ) throws {
    executor = QueueExecutor("kape.backend")
    self.settings = settings
    self.state = state
    self.issuer = issuer
    self.clock = clock
    self.log = log
    hasher = PasswordHasher(passwordCost)
    database = try Database(path: state.database)
    try Schema.prepare(database)
    formKey = try Self.secret("form key", in: database)
    verifierKey = try Self.verifierKey(in: state)
    ring = try Self.loadRing(settings.lifetimes, from: database)
    texts = try Self.texts(settings, in: state)
    links = Dictionary(uniqueKeysWithValues: settings.servers.map { ($0.name, InterfaceLink($0)) })
  }

  private static func texts(_ settings: BackendSettings, in state: StateDirectory) throws -> [String: String] {
    var texts = [state.file("ca.pem"): try CertificateAuthority(in: state).certificate]
    let lightway = settings.dedicatedIPs.flatMap(\.endpoints).map(\.caFile)
    let files = settings.locations.flatMap(\.endpoints).flatMap { endpoint -> [String?] in
      switch endpoint {
      case .openVPN(let endpoint): [endpoint.caFile, endpoint.tlsAuthFile]
      case .lightway(let endpoint): [endpoint.caFile]
      case .wireGuard, .proxy: []
      }
    }
    for path in (files + lightway).compactMap({ $0 }) {
      guard let text = try Files.text(path) else {
        throw Missing(description: "\(path): there is no such file, though the settings name it for an endpoint")
      }
      texts[path] = text
    }
    return texts
  }

  private static func secret(_ name: String, in database: Database) throws -> [UInt8] {
    if let value = try database.row("SELECT value FROM secrets WHERE name = ?", .text(name), map: { $0.blob(0) }) {
      return value
    }
    let value = SecretMemory.randomBytes(32)
    try database.run("INSERT INTO secrets (name, value) VALUES (?, ?)", .text(name), .blob(value))
    return value
  }

  private static func verifierKey(in state: StateDirectory) throws -> [UInt8] {
    if let text = try state.read("verifier.key") {
      return Array(String(decoding: text, as: UTF8.self).trimmingSpace.utf8)
    }
    let key = Array(RandomText.secret().utf8)
    try state.write(key + [0x0A], to: "verifier.key")
    return key
  }

  /// Makes keys that are due and puts in what the settings name; returns what was made, to be shown once.
  package func prepare() async throws -> Seeding.Made {
    try await rotateKeys()
    let seeding = Seeding(settings: settings, state: state, hasher: hasher, now: clock.seconds)
    let missing = try Seeding.missing(settings, in: database)
    let (made, hashed) = try await seeding.run(missing: missing)
    try seeding.insert(made, hashed, into: database)
    return made
  }
}

extension String {
  /// Without white space at both ends.
  var trimmingSpace: String {
    String(drop { $0.isWhitespace }.reversed().drop { $0.isWhitespace }.reversed())
  }
}
