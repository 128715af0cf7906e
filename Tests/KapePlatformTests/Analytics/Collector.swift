import Foundation

@testable import KapePlatform

/// A collector in a process of its own.
struct Collector {
  let server: TestServer
  let url: URL

  struct Batch: Decodable, Equatable {
    struct Event: Decodable, Equatable {
      let id: String
      let event: String
      let category: String
      let time: String
      let properties: [String: String]
    }

    let projectToken: String
    let distinctID: String
    let events: [Event]

    var names: [String] { events.map(\.event) }

    enum CodingKeys: String, CodingKey {
      case projectToken = "project_token"
      case distinctID = "distinct_id"
      case events
    }
  }

  /// It answers with these statuses one after the other; `:7` behind one is a Retry-After.
  init(_ statuses: String = "202") async throws {
    server = try await TestServer.python()
    guard let url = URL(string: "http://127.0.0.1:\(server.port)/collect/\(statuses)") else { throw URLError(.badURL) }
    self.url = url
  }

  /// What it has taken or refused so far, with the statuses.
  var batches: [(status: Int, batch: Batch)] {
    server.output.split(separator: "\n").compactMap { line in
      guard let match = line.firstMatch(of: #/^COLLECTED (\d+) (.*)$/#), let status = Int(match.1) else { return nil }
      return (try? JSONDecoder().decode(Batch.self, from: Data(match.2.utf8))).map { (status, $0) }
    }
  }

  /// The names of the events of each batch, once there are so many batches.
  func names(_ count: Int) async throws -> [[String]] {
    _ = try await server.waitFor { _ in batches.count >= count ? true : nil }
    return batches.map(\.batch.names)
  }
}

extension MixpanelConfiguration {
  static let test = MixpanelConfiguration(
    projectToken: "project", optOutTrackingByDefault: true, categories: [.qualityMetrics])
}
