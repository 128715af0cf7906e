/// Where the list of locations comes from.
package protocol LocationDirectory: Sendable {
  /// Names the backend.
  var source: String { get }

  /// - Throws: `KapeLocationError`; `CancellationError`.
  func locations() async throws -> [LocationRecord]
}
