import Foundation

/// Whom events are about: a random name that tells nothing, kept in the folder that app and tunnel share.
package struct TrackingIdentity: Sendable {
  private let file: WholeFile?
  private let disk = DiskQueue("tracking identity")

  /// In that file; nil: for this object's life only.
  package init(path: String?) {
    file = path.map { WholeFile($0, sizeLimit: 4096) }
  }

  private struct Content: Codable {
    var distinctID: String

    enum CodingKeys: String, CodingKey { case distinctID = "distinct_id" }
  }

  /// The one that is kept, or a new one.
  func current() async -> String {
    if let kept = try? await disk.run({ [file] in try Self.read(file) }) { return kept }
    return await renew()
  }

  /// A new one. One that cannot be kept is used all the same.
  func renew() async -> String {
    let made = UUID().uuidString
    try? await disk.run { [file] in
      guard let file else { return }
      try OwnedFolder.make((file.path as NSString).deletingLastPathComponent)
      try file.write(JSONEncoder().encode(Content(distinctID: made)))
    }
    return made
  }

  private static func read(_ file: WholeFile?) throws -> String? {
    guard let data = try file?.read() else { return nil }
    let kept = try JSONDecoder().decode(Content.self, from: data).distinctID
    return (1...128).contains(kept.utf8.count) ? kept : nil
  }
}
