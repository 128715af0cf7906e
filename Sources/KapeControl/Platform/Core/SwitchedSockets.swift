import Synchronization

/// Where the SDK's own connections get their sockets, which changes once the process is a tunnel's: from then on they
/// have to lead past the tunnel.
final class SwitchedSockets: Sendable {
  private let source = Mutex(KapeHTTPSockets.system)

  /// Asks, for each socket, whoever makes them at that moment.
  var sockets: KapeHTTPSockets {
    .made { family in
      let source = self.source.withLock { $0 }
      return try await source.make(family)
    }
  }

  func use(_ sockets: KapeHTTPSockets) { source.withLock { $0 = sockets } }
}
