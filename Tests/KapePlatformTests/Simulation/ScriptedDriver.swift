import Foundation
import KapePlatform
import Synchronization

/// A driver of any protocol that does as it is told.
final class ScriptedDriver: WireGuardDriver, OpenVPNDriver, LightwayDriver {
  private struct State {
    var isStopped = false
    var run: CheckedContinuation<PacketTunnelError?, Never>?
    var end: PacketTunnelError??
    var stop: [CheckedContinuation<Void, Never>] = []
  }
  let time: SimulatedTime
  let journal: Journal
  private let connecting: @Sendable (String) -> Script
  private let attaching: @Sendable () -> Script
  private let settings: PacketTunnelInterfaceSettings
  private let name = Box("")
  private let state = Mutex(State())

  init(
    time: SimulatedTime, journal: Journal, settings: PacketTunnelInterfaceSettings = ScriptedDriver.settings(),
    connecting: @escaping @Sendable (String) -> Script = { _ in .succeed() },
    attaching: @escaping @Sendable () -> Script = { .succeed() }
  ) {
    self.time = time
    self.journal = journal
    self.settings = settings
    self.connecting = connecting
    self.attaching = attaching
  }

  static func settings(dns: [IpAddress] = []) -> PacketTunnelInterfaceSettings {
    PacketTunnelInterfaceSettings(
      remoteAddress: .v4(ipV4: "192.0.2.1"), addresses: [.init(host: .v4(ipV4: "10.0.0.2"))],
      includedRoutes: PacketTunnelInterfaceSettings.everything, dnsServers: dns, mtu: 1400)
  }

  var isStopped: Bool { state.withLock { $0.isStopped } }

  func connect(_ setup: WireGuardSetup, socket: PacketTunnelSocket) async throws {
    try await connect("to \(setup.endpoint)")
  }

  func connect(
    _ configuration: OpenVPNConfiguration, credentials: OpenVPNCredentials, systemTunnel: any SystemTunnel
  ) async throws -> PacketTunnelInterfaceSettings {
    try await connect("to \(configuration.host) as \(credentials.username) with \(credentials.password)")
    return settings
  }

  func connect(
    _ endpoint: LightwayEndpoint, of configuration: LightwayConfiguration, credentials: LightwayCredentials,
    systemTunnel: any SystemTunnel
  ) async throws -> PacketTunnelInterfaceSettings {
    let shown: String =
      switch credentials {
      case .token(let token): token
      case .usernamePassword(let name, let password): "\(name) and \(password)"
      }
    try await connect("to \(endpoint.ip) with \(shown)")
    return settings
  }

  private func connect(_ what: String) async throws {
    name.value = what
    journal.add("driver \(what)")
    try await perform(connecting(what))
  }

  func attach(_ interface: PacketTunnelInterface) async throws {
    journal.add("attach \(name.value ?? "")")
    try await perform(attaching())
  }

  func run() async -> PacketTunnelError? {
    await withCheckedContinuation { continuation in
      let end: PacketTunnelError?? = state.withLock { state in
        if state.end == nil { state.run = continuation }
        return state.end
      }
      if let end { continuation.resume(returning: end) }
    }
  }

  func end(_ error: PacketTunnelError?) {
    let run = state.withLock { state in
      if state.end == nil { state.end = .some(error) }
      defer { state.run = nil }
      return state.run
    }
    run?.resume(returning: error)
  }

  func stop() async {
    let isFirst = state.withLock { state in
      defer { state.isStopped = true }
      return !state.isStopped
    }
    if isFirst { journal.add("end \(name.value ?? "")") }
    end(nil)
  }

  func currentDataUsage() async -> PacketTunnelDataUsage? { PacketTunnelDataUsage(bytesReceived: 7, bytesSent: 8) }

  private func perform(_ script: Script) async throws {
    switch script {
    case .succeed(let delay): if delay > .zero { try await time.sleep(for: delay) }
    case .fail(let error, let delay):
      if delay > .zero { try await time.sleep(for: delay) }
      throw error
    case .wait: try await time.sleep(for: .seconds(1_000_000))
    case .ignoreCancellation(let delay):
      await withCheckedContinuation { continuation in
        _ = time.schedule(after: delay) { continuation.resume() }
      }
    case .never: await withCheckedContinuation { continuation in state.withLock { $0.stop.append(continuation) } }
    }
  }
}

/// A system that gives interfaces and sockets which are none.
final class ScriptedSystem: SystemTunnel {
  let time: SimulatedTime
  let journal: Journal
  private let establishing: @Sendable () -> Script
  private let applied = Mutex<PacketTunnelInterfaceSettings?>(nil)

  init(time: SimulatedTime, journal: Journal, establishing: @escaping @Sendable () -> Script = { .succeed() }) {
    self.time = time
    self.journal = journal
    self.establishing = establishing
  }

  var settings: PacketTunnelInterfaceSettings? { applied.withLock { $0 } }

  func establish(_ settings: PacketTunnelInterfaceSettings) async throws -> PacketTunnelInterface {
    journal.add("establish")
    switch establishing() {
    case .succeed(let delay): if delay > .zero { try await time.sleep(for: delay) }
    case .fail(let error, _): throw error
    default:
      await withCheckedContinuation { continuation in
        _ = time.schedule(after: .seconds(60)) { continuation.resume() }
      }
    }
    applied.withLock { $0 = settings }
    return PacketTunnelInterface(descriptor: -1, name: "tun-test")
  }

  func close() async { journal.add("close") }

  func makeSocket(_ kind: PacketTunnelSocketKind) async throws -> PacketTunnelSocket {
    journal.add("socket \(kind.rawValue)")
    return PacketTunnelSocket(descriptor: -1)
  }
}

/// Attempts as a controller tells them.
final class RecordingReporter: AttemptReporter, PastAttemptReporter {
  let journal = Journal()
  private let open = Mutex<[UUID: any VpnConfiguration]>([:])

  func attemptDidBegin(configuration: any VpnConfiguration) -> UUID {
    journal.add("begin \(name(configuration))")
    let id = UUID()
    open.withLock { $0[id] = configuration }
    return id
  }

  func attemptDidEnd(_ id: UUID, result: PacketTunnelAttemptResult, endpoint: PacketTunnelConnectedEndpoint?) {
    let configuration = open.withLock { $0.removeValue(forKey: id) }
    journal.add("end \(configuration.map(name) ?? "unknown") \(text(result)) \(endpoint?.protocolDescription ?? "-")")
  }

  func attemptDidHappen(
    configuration: any VpnConfiguration, result: PacketTunnelAttemptResult, elapsed: Duration,
    endpoint: PacketTunnelConnectedEndpoint?
  ) {
    journal.add(
      "happened \(name(configuration)) \(text(result)) in \(elapsed) \(endpoint?.protocolDescription ?? "-")")
  }

  private func text(_ result: PacketTunnelAttemptResult) -> String {
    switch result {
    case .connected: "connected"
    case .cancelled: "cancelled"
    case .failed(let error): "failed \(error.cause.rawValue)"
    }
  }

  private func name(_ configuration: any VpnConfiguration) -> String {
    switch configuration {
    case let configuration as KapeWireGuardConfig: configuration.host
    case let configuration as OpenVPNConfiguration: configuration.host
    case let configuration as LightwayConfiguration:
      configuration.endpoints.map(\.ip.description).joined(separator: "+")
    default: "?"
    }
  }
}
