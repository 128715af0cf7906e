package import Foundation
import KapeProtocols

/// An address of one's own, which Lightway alone goes to.
package struct DedicatedIP: Sendable {
  package var locationId: String
  package var expiresAt: Date
  /// In place of the connection token, for this address alone. Secret.
  package var accessToken: String
  /// In pecking order.
  package var endpoints: [DiscoveredEndpoint]

  package init(locationId: String, expiresAt: Date, accessToken: String, endpoints: [DiscoveredEndpoint]) {
    self.locationId = locationId
    self.expiresAt = expiresAt
    self.accessToken = accessToken
    self.endpoints = endpoints
  }

  /// What the backend answers. Throws `DiscoveryError.unusable`.
  package init(_ data: Data) throws(DiscoveryError) {
    let body: Body
    do {
      body = try JSONDecoder().decode(Body.self, from: data)
    } catch {
      throw .unusable(DecodingError.place(error))
    }
    guard !body.accessToken.isEmpty else { throw .unusable(".access_token: empty") }
    guard let expiresAt = Self.date(body.expiresAt) else { throw .unusable(".expires_at: no time") }
    var endpoints: [DiscoveredEndpoint] = []
    for (number, entry) in body.endpoints.prefix(DiscoveryAnswer.entryLimit).enumerated() {
      guard case .success(let endpoint) = entry.result, case .lightway = endpoint else {
        throw .unusable(".endpoints[\(number)]: no Lightway endpoint")
      }
      endpoints.append(endpoint)
    }
    guard !endpoints.isEmpty else { throw .unusable(".endpoints: empty") }
    self.init(
      locationId: body.locationId, expiresAt: expiresAt, accessToken: body.accessToken, endpoints: endpoints)
  }

  private struct Body: Decodable {
    var locationId: String
    var expiresAt: String
    var accessToken: String
    var endpoints: [ListEntry<DiscoveredEndpoint>]

    enum CodingKeys: String, CodingKey {
      case endpoints
      case locationId = "location_id"
      case expiresAt = "expires_at"
      case accessToken = "access_token"
    }
  }

  /// RFC 3339, with fractions of a second or without.
  private static func date(_ text: String) -> Date? {
    (try? Date.ISO8601FormatStyle(includingFractionalSeconds: true).parse(text))
      ?? (try? Date.ISO8601FormatStyle().parse(text))
  }
}

extension DedicatedIP: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  package var description: String { "dedicated IP in \(locationId)" }
  package var debugDescription: String { description }
  package var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// Why a dedicated IP cannot be used.
package enum DedicatedIPError: Error, Hashable, Sendable {
  /// It is chosen, and its token is not kept with the session.
  case noToken
  /// Its term has ended.
  case expired
  case underMaintenance
  /// There is no such one.
  case unavailable
  /// Another protocol than Lightway is chosen, or Lightway is not linked.
  case unsupportedProtocol
  /// The subscription has none.
  case notEntitled
}

extension DedicatedIPError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .noToken: "the dedicated IP's token is not there: enter it again, or choose a location"
    case .expired: "the dedicated IP's term has ended: renew it, or choose a location"
    case .underMaintenance: "the dedicated IP is under maintenance: try again later, or choose a location"
    case .unavailable: "there is no dedicated IP for this token: check it, or choose a location"
    case .unsupportedProtocol:
      "a dedicated IP takes Lightway: choose that or automatic, with the Lightway bridge linked"
    case .notEntitled: "the subscription has no dedicated IP"
    }
  }

  /// As a session is told: only maintenance ends by itself.
  package var sessionError: any Error {
    switch self {
    case .underMaintenance: PacketTunnelError.configurationFailed(description)
    case .unsupportedProtocol: TerminalStartError(.unsupportedConfiguration(description))
    case .notEntitled: TerminalStartError(.noSubscription)
    case .noToken, .expired, .unavailable: TerminalStartError(.configurationFailed(description))
    }
  }
}
