package import Foundation

/// A sign-in as it is kept: who, and the tokens. It has secrets in it and is never printed.
package struct StoredSession: Codable, Equatable, Sendable {
  package enum Kind: String, Codable, Sendable { case account, guest }

  static let version = 1
  private var version = StoredSession.version

  /// Of this sign-in, so that what was fetched for an earlier one is not taken for this one's.
  package var id: UUID
  package var kind: Kind
  /// Where the tokens are good. They are never sent elsewhere.
  package var issuer: String
  package var clientId: String

  package var userId: String
  package var email: String?
  package var displayName: String?

  package var accessToken: String?
  package var accessTokenExpiry: Date?
  package var refreshToken: String?
  /// Names the refresh that has begun, until its answer is stored: a process that comes after a crash repeats it under
  /// the same name (see docs/session.md).
  package var refreshAttempt: String?
  /// Until when the issuer does not want to be asked for a renewal.
  package var renewalBlockedUntil: Date?
  /// BASE64URL of 32 bytes, in place of a refresh token.
  package var guestSecret: String?

  /// What was activated: entitlements of which one is enough.
  package var product: [String]?
  /// The one that was chosen for it.
  package var activeSubscription: KapeSubscription?

  package init(
    id: UUID = UUID(), kind: Kind, issuer: String, clientId: String, userId: String, email: String? = nil,
    displayName: String? = nil
  ) {
    self.id = id
    self.kind = kind
    self.issuer = issuer
    self.clientId = clientId
    self.userId = userId
    self.email = email
    self.displayName = displayName
  }

  /// Whether it was written in a form that is known here.
  var isKnown: Bool { version == Self.version }
}

extension StoredSession: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  package var description: String { "session \(id) (\(kind.rawValue))" }
  package var debugDescription: String { description }
  package var customMirror: Mirror { Mirror(self, children: []) }
}
