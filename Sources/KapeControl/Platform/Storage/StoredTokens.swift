package import Foundation

/// What the backend gave for a session, kept until it expires, for all processes alike.
package struct StoredTokens: Codable, Equatable, Sendable {
  package struct Receipt: Codable, Equatable, Sendable {
    package var text: String
    package var expiry: Date
    package var entitlements: [String]
    package var subscriptionId: String?
  }

  package struct ConnectionToken: Codable, Equatable, Sendable {
    package var text: String
    package var expiry: Date
    /// What it was asked for.
    package var product: [String]
  }

  package var session: UUID
  package var receipts: [Receipt] = []
  package var connection: ConnectionToken?
  /// Until when a path must not be asked again, because the backend said so.
  package var blocked: [String: Date] = [:]

  package init(session: UUID) { self.session = session }
}

extension StoredTokens: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  package var description: String { "tokens of session \(session)" }
  package var debugDescription: String { description }
  package var customMirror: Mirror { Mirror(self, children: []) }
}
