import Foundation
import KapeControl

/// `status.json` of a group: the tunnel writes it, the app reads it. The tunnel clears it when it begins and when it has
/// stopped, so that a tunnel that was killed is not taken for one that runs by those who do not ask the system.
package struct SharedStatusFile: Sendable {
  private let container: SharedContainer
  private let queue = DiskQueue("status.json")

  package init(_ container: SharedContainer) { self.container = container }

  /// nil: no tunnel has said anything, or what is there cannot be read.
  package func load() -> SharedTunnelStatus? { Self.load(container) }

  private static func load(_ container: SharedContainer) -> SharedTunnelStatus? {
    guard let data = (try? WholeFile(container.status).read()) ?? nil else { return nil }
    let decoder = JSONDecoder()
    decoder.dateDecodingStrategy = .iso8601
    return try? decoder.decode(SharedTunnelStatus.self, from: data)
  }

  /// Replaces it; changes of one process are made one after the other. Nothing is written when it stays the same.
  ///
  /// - Throws: `SystemError`. A tunnel goes on without.
  package func update(_ change: @escaping @Sendable (SharedTunnelStatus?) -> SharedTunnelStatus?) async throws {
    let container = container
    try await queue.run { try Self.replace(container, change) }
  }

  package func write(_ status: SharedTunnelStatus) async throws { try await update { _ in status } }

  package func clear() async throws { try await update { _ in nil } }

  private static func replace(
    _ container: SharedContainer, _ change: (SharedTunnelStatus?) -> SharedTunnelStatus?
  ) throws {
    let file = WholeFile(container.status)
    guard let status = change(load(container)) else {
      try file.remove()
      return
    }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .prettyPrinted, .withoutEscapingSlashes]
    encoder.dateEncodingStrategy = .iso8601
    let data = try encoder.encode(status)
    if let present = (try? file.read()) ?? nil, present == data { return }
    try container.make()
    try file.write(data)
  }
}
