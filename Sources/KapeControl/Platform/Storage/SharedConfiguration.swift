import Foundation
import KapeControl

/// What the app says to the tunnel: `config.json` in the group's folder. The app alone writes it; whoever reads takes
/// what is missing or of another type for not said. Each part of the SDK has its own keys, as an extension in its own
/// folder, and the others' stay as they are.
package struct SharedConfiguration: Equatable, Sendable {
  package var values: [String: AnyJSON] = [:]

  package init() {}

  package subscript(string key: String) -> String? {
    get {
      guard case .string(let text) = values[key] else { return nil }
      return text
    }
    set { values[key] = newValue.map { .string($0) } }
  }

  /// What the file says; nothing when there is none or it cannot be read.
  package static func load(_ container: SharedContainer) -> SharedConfiguration {
    var configuration = SharedConfiguration()
    if let data = (try? WholeFile(container.configuration).read()) ?? nil,
      let values = try? JSONDecoder().decode([String: AnyJSON].self, from: data)
    {
      configuration.values = values
    }
    return configuration
  }

  /// Changes it, with no other change in between; nothing is written when it stays the same.
  @discardableResult
  package static func update(
    _ container: SharedContainer, _ change: @Sendable (inout SharedConfiguration) throws -> Void
  ) async throws -> SharedConfiguration {
    try container.make()
    return try await FileLock(container.path + "/.config.lock").withLock {
      let before = load(container)
      var configuration = before
      try change(&configuration)
      guard configuration != before else { return configuration }
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.sortedKeys, .prettyPrinted, .withoutEscapingSlashes]
      try WholeFile(container.configuration).write(try encoder.encode(configuration.values))
      return configuration
    }
  }
}

extension SharedConfiguration {
  /// The kind of device that the app runs on.
  package var deviceModel: String? {
    get { self[string: "deviceModel"] }
    set { self[string: "deviceModel"] = newValue }
  }
}
