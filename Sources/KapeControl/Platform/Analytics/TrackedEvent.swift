import Foundation

/// An event that waits to be sent.
struct TrackedEvent: Sendable {
  let id: UUID
  let event: String
  let category: EventCategory
  let time: Date
  let properties: [String: String]
  /// Whom it is about, and for which project: a later reset or configuration does not change it.
  let owner: Owner

  struct Owner: Hashable, Sendable {
    var projectToken: String
    var distinctID: String
  }

  /// What is longer than the collector takes is cut, so that one event does not lose the others of its batch.
  init?(
    _ event: String, _ properties: [String: String], _ category: EventCategory, owner: Owner, time: Date
  ) {
    guard !event.isEmpty, event.utf8.count <= 128, !category.rawValue.isEmpty, category.rawValue.utf8.count <= 64 else {
      return nil
    }
    id = UUID()
    self.event = event
    self.category = category
    self.time = time
    self.owner = owner
    let named = properties.filter { $0.key.utf8.count <= 128 }.sorted { $0.key < $1.key }.prefix(64)
    self.properties = Dictionary(uniqueKeysWithValues: named.map { ($0.key, $0.value.cut(to: 1024)) })
  }
}

/// Events of one owner, as the collector takes them: `POST /tracking/events` of docs/backend.openapi.json.
struct TrackingBatch: Encodable {
  static let most = 100

  let events: [TrackedEvent]
  let owner: TrackedEvent.Owner

  /// The first ones of the queue that have one owner.
  init?(first queue: [TrackedEvent]) {
    guard let owner = queue.first?.owner else { return nil }
    self.owner = owner
    events = Array(queue.prefix(Self.most).prefix { $0.owner == owner })
  }

  private enum Key: String, CodingKey {
    case projectToken = "project_token"
    case distinctID = "distinct_id"
    case events, id, event, category, time, properties
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: Key.self)
    try container.encode(owner.projectToken, forKey: .projectToken)
    try container.encode(owner.distinctID, forKey: .distinctID)
    var list = container.nestedUnkeyedContainer(forKey: .events)
    for event in events {
      var entry = list.nestedContainer(keyedBy: Key.self)
      try entry.encode(event.id.uuidString, forKey: .id)
      try entry.encode(event.event, forKey: .event)
      try entry.encode(event.category.rawValue, forKey: .category)
      try entry.encode(
        event.time.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true)), forKey: .time)
      try entry.encode(event.properties, forKey: .properties)
    }
  }
}

extension String {
  /// At most that many bytes of UTF-8, without a character in two.
  fileprivate func cut(to size: Int) -> String {
    guard utf8.count > size else { return self }
    var result = self[...]
    while result.utf8.count > size { result = result.prefix(max(0, min(result.count - 1, size))) }
    return String(result)
  }
}
