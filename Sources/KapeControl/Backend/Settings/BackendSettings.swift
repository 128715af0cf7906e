import KapeProtocols

/// Everything about a backend that is not in its database: where it listens, its paths, lifetimes and limits, and what
/// it starts with.
package struct BackendSettings: Sendable {
  var listen: SocketAddress
  var tls: TLS?
  /// Of the tokens; nil: the address that it listens on.
  var issuer: String?
  var paths: [Operation: String]
  /// `aud` of every token but the ID token.
  var audience: String
  /// Whoever is to be connected needs this entitlement.
  var vpnEntitlement: String
  /// Whoever asks for a dedicated IP needs this one too.
  var dedicatedIPEntitlement: String
  var guests: Guests
  var clients: [Client]
  var lifetimes: Lifetimes
  var limits: Limits
  var bodyLimit: Int
  var peers: Peers
  var tracking: Tracking
  var users: [SeedUser]
  var locations: [Location]
  var servers: [WireGuardServer]
  var dedicatedIPs: [DedicatedIP]

  enum TLS: Sendable, Equatable {
    /// A certificate by the backend's own CA, for these names and addresses.
    case own(names: [String])
    /// Paths of PEM files.
    case files(certificate: String, key: String)
  }

  struct Guests: Sendable, Equatable {
    var areAllowed: Bool
    var tier: String
    var entitlements: [String]
  }

  /// An app that users sign in to; a public client (RFC 6749, section 2.1).
  struct Client: Sendable, Equatable {
    var id: String
    var redirectURIs: [String]
  }

  /// Seconds.
  struct Lifetimes: Sendable, Equatable {
    var form: Int64 = 600
    var code: Int64 = 60
    var identityToken: Int64 = 900
    var refreshToken: Int64 = 30 * 86_400
    /// After a refresh whose answer was lost, the token it used works once more for so long.
    var refreshRetry: Int64 = 30
    var receipt: Int64 = 3600
    var connectionToken: Int64 = 3600
    var dedicatedIPToken: Int64 = 3600
    /// A key signs for so long.
    var signingKey: Int64 = 30 * 86_400
    /// What a key signed is good for so long after its last day; the next one is published so long before its first.
    var keyOverlap: Int64 = 86_400
    var peer: Int64 = 86_400
    /// A holder's pseudonym changes after so long.
    var holder: Int64 = 2 * 86_400
    var endpoints: Int64 = 3600
  }

  struct Limits: Sendable, Equatable {
    var operations: [Operation: RateLimiter.Limit]
    /// New identity tokens of guests for an address.
    var guests = RateLimiter.Limit(requests: 30, seconds: 3600)
    /// Wrong passwords for a user.
    var passwords = RateLimiter.Limit(requests: 5, seconds: 300)
  }

  struct Peers: Sendable, Equatable {
    enum AtCap: String, Sendable, CaseIterable {
      /// The peer that was longest without a handshake makes room.
      case replace
      case refuse
    }

    /// Of a user, on all servers together.
    var cap: Int64
    var atCap: AtCap
    /// Seconds between two looks at each interface.
    var interval: Int64
  }

  struct Tracking: Sendable, Equatable {
    var projectTokens: [String]
    /// Seconds.
    var kept: Int64
    var most: Int64
  }
}
