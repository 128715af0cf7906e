package import Foundation
import KapeControl

/// The locations as they were told last, in `locations.json` of the group's folder. The app writes it; the tunnel reads
/// it for the automatic choice.
package struct LocationList: Codable, Equatable, Sendable {
  /// The backend that told them. Those of another are none of ours.
  package var source: String
  package var fetchedAt: Date
  /// In the backend's order.
  package var locations: [LocationRecord]

  package init(source: String, fetchedAt: Date, locations: [LocationRecord]) {
    self.source = source
    self.fetchedAt = fetchedAt
    self.locations = locations
  }

  /// nil: none was told, what is there cannot be read, or it is of another backend.
  package static func load(_ container: SharedContainer, source: String) -> LocationList? {
    let decoder = JSONDecoder()
    decoder.dateDecodingStrategy = .iso8601
    guard let data = (try? WholeFile(container.locations, sizeLimit: 4 << 20).read()) ?? nil,
      let list = try? decoder.decode(LocationList.self, from: data), list.source == source
    else { return nil }
    return list
  }

  package func save(_ container: SharedContainer) throws {
    let encoder = JSONEncoder()
    encoder.dateEncodingStrategy = .iso8601
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    let data = try encoder.encode(self)
    try container.make()
    try WholeFile(container.locations).write(data)
  }
}
