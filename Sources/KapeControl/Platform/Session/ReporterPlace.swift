import Synchronization

/// Where a controller keeps its reporter.
final class ReporterPlace: Sendable {
  private let reporter = Mutex<(any AttemptReporter)?>(nil)

  func set(_ reporter: (any AttemptReporter)?) { self.reporter.withLock { $0 = reporter } }

  var current: (any AttemptReporter)? { reporter.withLock { $0 } }

  /// One attempt that is reported, if there is anybody to report to.
  func attempt(
    _ configuration: any VpnConfiguration, endpoint: PacketTunnelConnectedEndpoint, _ connect: () async throws -> Void
  ) async throws {
    if let current { return try await current.attempt(configuration, endpoint: endpoint, connect) }
    do { try await connect() } catch { throw PacketTunnelError.ofAttempt(error) }
  }
}
