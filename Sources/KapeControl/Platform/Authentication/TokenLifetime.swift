import Foundation
import KapeCrypto

/// Until when a token is good, by the clock here.
enum TokenLifetime {
  /// So far may the clock be off; with a larger distance the token's length is what is believed.
  static let clockTolerance: TimeInterval = 300
  /// A token is not used for its last moments: it has to arrive before it expires.
  static let margin: TimeInterval = 15

  /// Of a token that has just come. A machine whose clock is wrong would otherwise take each for expired, or use one that
  /// is; so where `iat` does not fit the clock, only the distance from it to `exp` counts.
  ///
  /// nil: it does not say, and neither does `expiresIn` (seconds).
  static func expiry(of token: String, receivedAt now: Date, expiresIn: TimeInterval? = nil) -> Date? {
    let told = expiresIn.map { now + min(max($0, 0), 10 * 365 * 86_400) }
    guard let token = try? JSONWebToken(unverified: token), let expiresAt = token.expiresAt else { return told }
    var expiry = Date(timeIntervalSince1970: expiresAt)
    if let issuedAt = token.issuedAt, abs(issuedAt - now.timeIntervalSince1970) > clockTolerance {
      expiry = now + max(0, expiresAt - issuedAt)
    }
    return told.map { min($0, expiry) } ?? expiry
  }

  static func isGood(_ expiry: Date?, at now: Date) -> Bool { expiry.map { now + margin < $0 } ?? false }
}
