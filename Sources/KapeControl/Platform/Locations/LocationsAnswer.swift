package import Foundation

/// What the backend answers to a request for the locations.
package struct LocationsAnswer: Sendable {
  /// Of one answer, so many entries are looked at.
  static let entryLimit = 2000

  /// In the backend's order, each id once.
  package var locations: [LocationRecord]
  /// Entries that were left out, each with its place and what is wrong there.
  package var refused: [String]

  /// Throws `DiscoveryError.unusable` when it is no answer at all, or when every entry had to be left out.
  package init(_ data: Data) throws(DiscoveryError) {
    let body: Body
    do {
      body = try JSONDecoder().decode(Body.self, from: data)
    } catch {
      throw .unusable(DecodingError.place(error))
    }
    locations = []
    refused = []
    var seen: Set<String> = []
    for (number, entry) in body.locations.prefix(Self.entryLimit).enumerated() {
      switch entry.result {
      case .success(let location) where !seen.insert(location.id).inserted:
        refused.append("locations[\(number)].id: it is there twice")
      case .success(let location): locations.append(location)
      case .failure(let error): refused.append("locations[\(number)]\(DecodingError.place(error))")
      }
    }
    if let first = refused.first, locations.isEmpty { throw .unusable(first) }
  }

  private struct Body: Decodable {
    var locations: [ListEntry<LocationRecord>]
  }
}
