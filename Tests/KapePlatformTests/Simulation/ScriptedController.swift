import Foundation
import KapePlatform
import Synchronization

/// Configurations of two kinds, so that there can be two controllers.
struct Endpoint: VpnConfiguration, Hashable {
  var vpnProtocolName = "wireguard"
  var obfuscationDescription = "none"
  var name: String
  init(_ name: String) { self.name = name }
}

struct OtherEndpoint: VpnConfiguration, Hashable {
  var vpnProtocolName = "openvpn"
  var name: String
  init(_ name: String) { self.name = name }
}

/// One that no controller is for.
struct StrangeEndpoint: VpnConfiguration {
  var vpnProtocolName = "strange"
}

/// What a call of a controller does. Durations are virtual.
enum Script: Sendable {
  case succeed(after: Duration = .zero)
  case fail(PacketTunnelError, after: Duration = .zero)
  /// Until it is cancelled.
  case wait
  /// Takes that long whatever anyone says, then succeeds.
  case ignoreCancellation(Duration)
  /// Until the simulation is told to end.
  case never
}

/// A controller that does as it is told, and complains in the journal when it is called as it must not be.
final class ScriptedController<Configuration: VpnConfiguration>: ConnectionController {
  private struct State {
    var reporter: (any AttemptReporter)?
    var isConnecting = false
    var isUp = false
    var run: CheckedContinuation<PacketTunnelError?, Never>?
    /// What ended the connection before anyone ran it.
    var ended: PacketTunnelError??
    var connection = 0
    var hung: [CheckedContinuation<Void, Never>] = []
  }

  let time: SimulatedTime
  let journal: Journal
  let name: String
  /// What the next connection does, for the configuration and the number of the call.
  private let connecting: @Sendable (Configuration, Int) -> Script
  /// Ends the n-th connection that came up: with that error, after that time; nil: never.
  private let running: @Sendable (Int) -> (error: PacketTunnelError?, after: Duration)?
  private let stopping: @Sendable (Int) -> Script
  private let state = Mutex(State())
  private let connectCalls = Mutex(0)
  private let stopCalls = Mutex(0)
  let usage = Box(PacketTunnelDataUsage(bytesReceived: 1, bytesSent: 2))
  let reports = Box(true)

  init(
    _ type: Configuration.Type = Configuration.self, time: SimulatedTime, journal: Journal, name: String = "c",
    connecting: @escaping @Sendable (Configuration, Int) -> Script = { _, _ in .succeed() },
    running: @escaping @Sendable (Int) -> (error: PacketTunnelError?, after: Duration)? = { _ in nil },
    stopping: @escaping @Sendable (Int) -> Script = { _ in .succeed() }
  ) {
    self.time = time
    self.journal = journal
    self.name = name
    self.connecting = connecting
    self.running = running
    self.stopping = stopping
  }

  var isUp: Bool { state.withLock { $0.isUp } }
  var isIdle: Bool { state.withLock { !$0.isUp && !$0.isConnecting && $0.run == nil } }
  var connectCount: Int { connectCalls.withLock { $0 } }

  func setAttemptReporter(_ reporter: (any AttemptReporter)?) async {
    state.withLock { $0.reporter = reporter }
  }

  func connect(_ configuration: Configuration) async throws {
    let number = connectCalls.withLock { count in
      count += 1
      return count
    }
    journal.add("\(name) connect")
    let reporter = state.withLock { state in
      if state.isConnecting || state.isUp { journal.add("VIOLATION \(name) connect while in use") }
      state.isConnecting = true
      return reports.value == true ? state.reporter : nil
    }
    let attempt = reporter?.attemptDidBegin(configuration: configuration)
    let result: PacketTunnelAttemptResult
    do {
      try await perform(connecting(configuration, number))
      result = .connected
    } catch let error as PacketTunnelError {
      result = .failed(error)
    } catch {
      result = .cancelled
    }
    let endpoint = PacketTunnelConnectedEndpoint(host: "192.0.2.\(number % 250)", protocolDescription: "WireGuard")
    let connection = state.withLock { state in
      state.isConnecting = false
      guard result == .connected else { return 0 }
      state.isUp = true
      state.ended = nil
      state.connection += 1
      return state.connection
    }
    if let attempt { reporter?.attemptDidEnd(attempt, result: result, endpoint: endpoint) }
    switch result {
    case .connected:
      if let end = running(connection) {
        time.schedule(after: end.after) { [weak self] in self?.end(end.error, connection) }
      }
    case .failed(let error): throw error
    case .cancelled: throw CancellationError()
    }
  }

  /// Ends the connection that is up, or that with the number.
  func end(_ error: PacketTunnelError?, _ connection: Int? = nil) {
    let run: CheckedContinuation<PacketTunnelError?, Never>? = state.withLock { state in
      guard state.isUp, connection == nil || connection == state.connection else { return nil }
      guard let run = state.run else {
        state.ended = .some(error)
        return nil
      }
      state.run = nil
      return run
    }
    run?.resume(returning: error)
  }

  func runVPN() async -> PacketTunnelError? {
    journal.add("\(name) run")
    return await withCheckedContinuation { continuation in
      let ended: PacketTunnelError?? = state.withLock { state in
        if state.run != nil { journal.add("VIOLATION \(name) run twice") }
        guard state.isUp, state.ended == nil else { return state.ended ?? .some(nil) }
        state.run = continuation
        return nil
      }
      if let ended { continuation.resume(returning: ended) }
    }
  }

  func stop() async {
    let number = stopCalls.withLock { count in
      count += 1
      return count
    }
    journal.add("\(name) stop")
    try? await perform(stopping(number))
    let run = state.withLock { state in
      state.isUp = false
      defer { state.run = nil }
      return state.run
    }
    run?.resume(returning: nil)
  }

  func currentDataUsage() async -> PacketTunnelDataUsage? { usage.value }

  private func perform(_ script: Script) async throws {
    switch script {
    case .succeed(let delay):
      if delay > .zero { try await time.sleep(for: delay) }
    case .fail(let error, let delay):
      if delay > .zero { try await time.sleep(for: delay) }
      throw error
    case .wait:
      try await time.sleep(for: .seconds(1_000_000))
    case .ignoreCancellation(let delay):
      await withCheckedContinuation { continuation in
        _ = time.schedule(after: delay) { continuation.resume() }
      }
    case .never:
      await withCheckedContinuation { continuation in state.withLock { $0.hung.append(continuation) } }
    }
  }

  /// Lets everything return that never would.
  func release() {
    let hung = state.withLock { state in
      defer { state.hung = [] }
      return state.hung
    }
    for continuation in hung { continuation.resume() }
  }
}
