package import Foundation
import KapeControl

/// What was measured, network by network, in `smart-locations.json` of the group's folder. The app writes it; the tunnel
/// reads it for the automatic choice.
package struct SmartLocationCache: Equatable, Sendable {
  /// So long a measurement stands for one of now.
  package static let maximumAge: TimeInterval = 30 * 86_400
  /// Networks that are remembered, the latest.
  static let entryLimit = 32

  package struct Entry: Codable, Equatable, Sendable {
    package var fingerprint: NetworkFingerprint
    package var measuredAt: Date
    /// With transfers over HTTP.
    package var isExtended: Bool
    /// Best first.
    package var assessments: [LocationAssessment]

    package init(
      fingerprint: NetworkFingerprint, measuredAt: Date, isExtended: Bool, assessments: [LocationAssessment]
    ) {
      self.fingerprint = fingerprint
      self.measuredAt = measuredAt
      self.isExtended = isExtended
      self.assessments = assessments
    }
  }

  package private(set) var entries: [Entry] = []

  package init(_ entries: [Entry] = []) { self.entries = entries }

  /// The newest of those that match best.
  package func best(for fingerprint: NetworkFingerprint, at now: Date) -> (
    entry: Entry, match: NetworkFingerprint.Match
  )? {
    let fresh = entries.filter { Self.isFresh($0, at: now) }
    for match in NetworkFingerprint.Match.allCases {
      let found = fresh.filter { $0.fingerprint.matches(fingerprint, match) }.max { $0.measuredAt < $1.measuredAt }
      if let found { return (found, match) }
    }
    return nil
  }

  /// A measurement of the future says that the clock was put back: it is as good as none.
  private static func isFresh(_ entry: Entry, at now: Date) -> Bool {
    let age = now.timeIntervalSince(entry.measuredAt)
    return age >= 0 && age < maximumAge
  }

  /// In place of what was measured in the same network before.
  package mutating func insert(_ entry: Entry, at now: Date) {
    entries.removeAll { $0.fingerprint == entry.fingerprint || !Self.isFresh($0, at: now) }
    entries.append(entry)
    entries = Array(entries.sorted { $0.measuredAt > $1.measuredAt }.prefix(Self.entryLimit))
  }

  // MARK: The file

  package static func load(_ container: SharedContainer) -> SmartLocationCache {
    guard let data = (try? WholeFile(container.smartLocations).read()) ?? nil,
      let entries = try? decoder.decode([ListEntry<Entry>].self, from: data)
    else { return SmartLocationCache() }
    return SmartLocationCache(entries.compactMap { try? $0.result.get() })
  }

  package func save(_ container: SharedContainer) throws {
    try container.make()
    try WholeFile(container.smartLocations).write(try Self.encoder.encode(entries))
  }

  private static var decoder: JSONDecoder {
    let decoder = JSONDecoder()
    decoder.dateDecodingStrategy = .iso8601
    return decoder
  }

  private static var encoder: JSONEncoder {
    let encoder = JSONEncoder()
    encoder.dateEncodingStrategy = .iso8601
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return encoder
  }
}

extension SharedContainer {
  package var smartLocations: String { path + "/smart-locations.json" }
}
