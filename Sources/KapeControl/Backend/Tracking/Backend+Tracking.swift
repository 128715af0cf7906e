import Foundation

extension Backend {
  /// Takes in a batch of events, all of it or nothing. An event that is there already is not counted again, so that an
  /// app may send a batch again whose answer it lost.
  func track(_ request: HTTPRequest) throws -> HTTPResponse {
    try limit(.track, request.client)
    let batch = try members(request, ["project_token", "distinct_id"], others: ["events"])
    let project = try Self.text(batch["project_token"], "project_token", 128)
    let distinct = try Self.text(batch["distinct_id"], "distinct_id", 128)
    guard settings.tracking.projectTokens.contains(project) else {
      throw Refusal(403, .unknownProject, "there is no project of that token")
    }
    guard let array = batch["events"]?.array, (1...100).contains(array.count) else {
      throw Refusal(400, .invalidRequest, "events must be an array of 1 to 100")
    }
    let events = try array.enumerated().map { try TrackingEvent($1, at: "events[\($0)]") }
    let now = clock.seconds
    let accepted = try database.transaction {
      try events.reduce(Int64(0)) { count, event in
        try database.run(
          """
          INSERT INTO events (id, project, distinct_id, event, category, time, properties, received)
          VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING
          """, .text(event.id), .text(project), .text(distinct), .text(event.event), .text(event.category),
          .text(event.time), .text(event.properties), .integer(now))
        return count + Int64(database.changes)
      }
    }
    hasNewEvents = true
    return .json(["accepted": .integer(accepted)], status: 202)
  }

  static func text(_ json: JSON?, _ place: String, _ most: Int) throws -> String {
    guard let text = json?.string, (1...most).contains(text.utf8.count) else {
      throw Refusal(400, .invalidRequest, "\(place) must be a text of 1 to \(most) bytes")
    }
    return text
  }
}

private struct TrackingEvent {
  let id: String
  let event: String
  let category: String
  let time: String
  /// JSON.
  let properties: String

  init(_ json: JSON, at place: String) throws {
    func wrong(_ text: String) -> Refusal { Refusal(400, .invalidRequest, "\(place)\(text)") }
    guard case .object(let members) = json else { throw wrong(" must be an object") }
    guard Set(members.keys) == ["id", "event", "category", "time", "properties"] else {
      throw wrong(" must have id, event, category, time and properties, and nothing else")
    }
    guard let id = members["id"]?.string.flatMap({ UUID(uuidString: $0) }) else { throw wrong(".id must be a UUID") }
    self.id = id.uuidString
    event = try Backend.text(members["event"], "\(place).event", 128)
    category = try Backend.text(members["category"], "\(place).category", 64)
    time = try Backend.text(members["time"], "\(place).time", 64)
    guard (try? Date(time, strategy: .iso8601)) != nil || Self.isFractional(time) else {
      throw wrong(".time must be RFC 3339, such as 2026-11-30T10:09:08Z")
    }
    guard case .object(let properties) = members["properties"], properties.count <= 64,
      properties.allSatisfy({ $0.key.utf8.count <= 128 && ($0.value.string?.utf8.count ?? .max) <= 1024 })
    else { throw wrong(".properties must be an object of at most 64 texts of at most 1,024 bytes") }
    self.properties = JSON.object(properties).text
  }

  private static func isFractional(_ text: String) -> Bool {
    (try? Date(text, strategy: Date.ISO8601FormatStyle(includingFractionalSeconds: true))) != nil
  }
}
