package import KapeControl
import KapeProtocols

/// The backend as a whole: the API's listener, one for each server's key exchange, and what is done from time to time.
package final class BackendServer: Sendable {
  /// What the API's users connect to.
  package let url: String
  package let backend: Backend
  /// What was made at random for what is new in the settings; shown once.
  package let made: Seeding.Made
  private let listeners: [HTTPListener]
  private let sweeper: Task<Void, Never>
  private let control: TestControl?

  /// `controlSocket`: where a test moves `clock` on.
  package init(
    settings: BackendSettings, state: StateDirectory, clock: any BackendClock, log: EventLog,
    controlSocket: String? = nil
  ) async throws {
    let authority = try CertificateAuthority(in: state)
    let socket = try ListeningSocket(settings.listen)
    url = (settings.tls == nil ? "http" : "https") + "://\(socket.address)"
    let backend = try Backend(
      settings: settings, state: state, issuer: settings.issuer ?? url, clock: clock, log: log)
    self.backend = backend
    made = try await backend.prepare()
    var listeners: [HTTPListener] = []
    do {
      listeners.append(
        try Self.listen(
          socket, try Self.identity(settings.tls, authority), settings, backend,
          paths: settings.paths.filter { $0.key != .addKey }, server: nil))
      for server in settings.servers {
        listeners.append(
          try Self.listen(
            ListeningSocket(server.listen ?? server.auth),
            authority.identity(commonName: server.certDN, names: ["\(server.auth.address)"]), settings, backend,
            paths: settings.paths.filter { $0.key == .addKey }, server: server))
      }
      control =
        try controlSocket.map { path in
          guard let clock = clock as? AdjustableBackendClock else { return nil }
          return try TestControl(path, clock, backend)
        } ?? nil
    } catch {
      for listener in listeners { await listener.stop() }
      throw error
    }
    self.listeners = listeners
    let interval = settings.peers.interval
    sweeper = Task {
      while !Task.isCancelled {
        await backend.sweep()
        try? await Task.sleep(for: .seconds(interval))
      }
    }
  }

  private static func listen(
    _ socket: consuming ListeningSocket, _ identity: HTTPListener.Identity?, _ settings: BackendSettings,
    _ backend: Backend, paths: [Operation: String], server: WireGuardServer?
  ) throws -> HTTPListener {
    let router = Router(paths)
    var limits = HTTPListener.Limits()
    limits.body = settings.bodyLimit
    return try HTTPListener(on: socket, identity: identity, limits: limits) { request in
      Backend.refuse(request, router)
    } handler: { request in
      await backend.answer(request, router, at: server)
    }
  }

  private static func identity(
    _ tls: BackendSettings.TLS?, _ authority: CertificateAuthority
  ) throws -> HTTPListener.Identity? {
    switch tls {
    case nil: return nil
    case .own(let names): return try authority.identity(commonName: names.first ?? "kape backend", names: names)
    case .files(let certificate, let key):
      guard let pem = try Files.text(certificate) else {
        throw Backend.Missing(description: "\(certificate): no such file")
      }
      guard let keyPEM = try Files.text(key) else { throw Backend.Missing(description: "\(key): no such file") }
      return HTTPListener.Identity(certificate: pem, key: keyPEM)
    }
  }

  /// Where the key exchange of each server is reached, in the order of the settings.
  package var keyExchanges: [String] { listeners.dropFirst().map { "https://\($0.address)" } }

  /// Answers what has come, then no more. Peers stay on their interfaces: the next start finds them.
  package func stop() async {
    sweeper.cancel()
    control?.stop()
    for listener in listeners { await listener.stop() }
    await sweeper.value
  }
}
