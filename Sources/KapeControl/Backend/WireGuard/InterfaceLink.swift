import KapeControl
import KapeCrypto
import KapeProtocols

/// The way to one WireGuard interface: its configuration socket, used by one at a time, away from the database.
actor InterfaceLink {
  private let server: WireGuardServer
  private let executor: QueueExecutor
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// The interface's own key and the process that told it.
  private var known: (key: PublicKey, process: Int32)?

  init(_ server: WireGuardServer) {
    self.server = server
    executor = QueueExecutor("kape.backend.interface")
  }

  /// nil: nobody answers, or the interface has no key.
  func report() -> InterfaceReport? {
    guard let report = ConfigurationProtocolClient.report(server.name, at: server.socket), let key = report.publicKey
    else {
      known = nil
      return nil
    }
    known = (key, report.process)
    return report
  }

  /// The interface's public key, which apps are told.
  func publicKey() -> PublicKey? { known?.key ?? report()?.publicKey }

  /// Returns the interface's public key, as it is with the changes made.
  func apply(_ changes: [ConfigurationProtocolClient.PeerChange]) throws -> PublicKey {
    let process = try ConfigurationProtocolClient.apply(changes, at: server.socket)
    // Another process may have another key.
    if let known, known.process == process { return known.key }
    guard let key = report()?.publicKey else { throw ConfigurationProtocolClient.Failure.unanswered }
    return key
  }
}
