/// Where endpoints come from.
package protocol EndpointDirectory: Sendable {
  /// Names the backend.
  var source: String { get }

  /// Whether somebody is signed in who may use the VPN: cheap while that is known.
  ///
  /// - Throws: `TerminalStartError` when not; `DiscoveryError` when it cannot be found out now; `CancellationError`.
  func checkAccess() async throws

  /// - Throws: as `checkAccess`.
  func endpoints(_ locationId: String, _ protocols: Set<DiscoveryProtocol>) async throws -> DiscoveryAnswer

  /// What a dedicated IP's token stands for.
  ///
  /// - Throws: `DedicatedIPError`; as `checkAccess`.
  func dedicatedIP(_ token: String) async throws -> DedicatedIP
}
