package import Foundation

/// What the backend answers to a request for a location's endpoints.
package struct DiscoveryAnswer: Sendable {
  /// Of one answer, so many entries are looked at.
  static let entryLimit = 1000

  package var locationId: String
  /// In pecking order.
  package var endpoints: [DiscoveredEndpoint]
  /// How long it may be kept; nil: as long as may be.
  package var maxAgeSeconds: Int?
  /// Entries that were left out, each with its place and what is wrong there: of a kind that this version does not know,
  /// or not as described.
  package var refused: [String]

  /// Throws `DiscoveryError.unusable` when it is no answer at all, or when every entry had to be left out.
  package init(_ data: Data) throws(DiscoveryError) {
    let body: Body
    do {
      body = try JSONDecoder().decode(Body.self, from: data)
    } catch {
      throw .unusable(DecodingError.place(error))
    }
    locationId = body.locationId
    maxAgeSeconds = body.maxAge.map { max(0, $0) }
    endpoints = []
    refused = []
    for (number, entry) in body.endpoints.prefix(Self.entryLimit).enumerated() {
      switch entry.result {
      case .success(let endpoint): endpoints.append(endpoint)
      case .failure(let error): refused.append("endpoints[\(number)]\(DecodingError.place(error))")
      }
    }
    if let first = refused.first, endpoints.isEmpty { throw .unusable(first) }
  }

  private struct Body: Decodable {
    var locationId: String
    var endpoints: [ListEntry<DiscoveredEndpoint>]
    var maxAge: Int?

    enum CodingKeys: String, CodingKey {
      case endpoints
      case locationId = "location_id"
      case maxAge = "max_age"
    }
  }
}
