package import Foundation
package import KapeProtocols

/// What discovery answered, in `endpoints.json` of the group's folder: an answer for each backend, location and choice of
/// protocols. App and tunnel write it, each as a whole.
package struct DiscoveryCache: Equatable, Sendable {
  /// So long an answer is as good as a new one, unless it says less.
  package static let maximumAge: TimeInterval = 3600
  /// Answers that are kept, the latest.
  static let entryLimit = 16

  package struct Key: Codable, Hashable, Sendable {
    var source: String
    var locationId: String
    /// As it is asked for.
    var protocols: String

    package init(source: String, locationId: String, protocols: Set<DiscoveryProtocol>) {
      self.source = source
      self.locationId = locationId
      self.protocols = protocols.list
    }
  }

  package struct Entry: Codable, Equatable, Sendable {
    package var key: Key
    package var fetchedAt: Date
    package var maxAgeSeconds: Int?
    package var endpoints: [DiscoveredEndpoint]
    /// Milliseconds to servers, by address.
    package var latenciesMs: [String: Double]

    package init(
      key: Key, fetchedAt: Date, maxAgeSeconds: Int? = nil, endpoints: [DiscoveredEndpoint],
      latenciesMs: [String: Double] = [:]
    ) {
      self.key = key
      self.fetchedAt = fetchedAt
      self.maxAgeSeconds = maxAgeSeconds
      self.endpoints = endpoints
      self.latenciesMs = latenciesMs
    }

    /// One of the future says that the clock was put back: it is outdated.
    package func isFresh(at now: Date) -> Bool {
      let age = now.timeIntervalSince(fetchedAt)
      let limit = min(maxAgeSeconds.map(TimeInterval.init) ?? maximumAge, maximumAge)
      return age >= 0 && age < limit
    }

    package var latencies: [IPAddress: Duration] {
      var latencies: [IPAddress: Duration] = [:]
      for (text, milliseconds) in latenciesMs where milliseconds.isFinite && milliseconds >= 0 {
        if let address = IPAddress(text) { latencies[address] = .milliseconds(min(milliseconds, 60_000)) }
      }
      return latencies
    }
  }

  package private(set) var entries: [Entry]

  package init(_ entries: [Entry] = []) { self.entries = entries }

  package subscript(key: Key) -> Entry? { entries.first { $0.key == key } }

  package mutating func insert(_ entry: Entry) {
    entries.removeAll { $0.key == entry.key }
    entries.insert(entry, at: 0)
    entries = Array(entries.prefix(Self.entryLimit))
  }

  // MARK: The file

  private static let sizeLimit = 8 << 20

  /// Empty: there is none. Throws when it is there and cannot be read, or is none.
  package static func load(_ container: SharedContainer) throws -> DiscoveryCache {
    guard let data = try WholeFile(container.endpoints, sizeLimit: sizeLimit).read() else { return DiscoveryCache() }
    let decoder = JSONDecoder()
    decoder.dateDecodingStrategy = .iso8601
    let entries = try decoder.decode([ListEntry<Entry>].self, from: data)
    return DiscoveryCache(entries.compactMap { try? $0.result.get() })
  }

  package func save(_ container: SharedContainer) throws {
    let encoder = JSONEncoder()
    encoder.dateEncodingStrategy = .iso8601
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    let data = try encoder.encode(entries)
    try container.make()
    try WholeFile(container.endpoints).write(data)
  }
}

extension SharedContainer {
  package var endpoints: String { path + "/endpoints.json" }
}
