import KapePlatform
import Synchronization

/// A system that says in the journal what it is asked to do.
final class ScriptedTunnel: SystemTunnel, ReassertingController {
  let journal: Journal
  /// What it was told of reasserting: between other calls that comes when it comes.
  let flags = Journal()
  let time: SimulatedTime
  let raising: @Sendable (Int) -> Script
  let closing: @Sendable (Int) -> Script
  let reasserting: @Sendable (Bool) -> Script
  private struct State {
    var raised = 0
    var closed = 0
    var hung: [CheckedContinuation<Void, Never>] = []
  }
  private let state = Mutex(State())

  init(
    time: SimulatedTime, journal: Journal, raising: @escaping @Sendable (Int) -> Script = { _ in .succeed() },
    closing: @escaping @Sendable (Int) -> Script = { _ in .succeed() },
    reasserting: @escaping @Sendable (Bool) -> Script = { _ in .succeed() }
  ) {
    self.time = time
    self.journal = journal
    self.raising = raising
    self.closing = closing
    self.reasserting = reasserting
  }

  func establish(_ settings: PacketTunnelInterfaceSettings) async throws -> PacketTunnelInterface {
    throw PacketTunnelError.tunnelSetupFailed("a script")
  }

  func makeSocket(_ kind: PacketTunnelSocketKind) async throws -> PacketTunnelSocket {
    throw PacketTunnelError.tunnelSetupFailed("a script")
  }

  func raiseNetworkLock() async throws {
    let number = state.withLock { state in
      state.raised += 1
      return state.raised
    }
    journal.add("lock")
    try await perform(raising(number))
  }

  func dropNetworkLock() async { journal.add("unlock") }

  func close() async {
    let number = state.withLock { state in
      state.closed += 1
      return state.closed
    }
    journal.add("close")
    try? await perform(closing(number))
  }

  func setReasserting(_ value: Bool) async {
    flags.add("reasserting \(value)")
    try? await perform(reasserting(value))
  }

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
    case .never:
      await withCheckedContinuation { continuation in state.withLock { $0.hung.append(continuation) } }
    }
  }

  func release() {
    let hung = state.withLock { state in
      defer { state.hung = [] }
      return state.hung
    }
    for continuation in hung { continuation.resume() }
  }
}

/// The network as the test says it is.
final class ScriptedNetwork: NetworkPathMonitor {
  static let wifi = NetworkPath(ipv4: .init(interface: "wlan0", source: "10.0.0.2", gateway: "10.0.0.1"))
  static let cable = NetworkPath(ipv4: .init(interface: "eth0", source: "10.9.0.2", gateway: "10.9.0.1"))
  static let offline = NetworkPath()

  private struct State {
    var path: NetworkPath
    var streams: [AsyncStream<NetworkPath>.Continuation] = []
  }
  private let state: Mutex<State>

  init(_ path: NetworkPath = wifi) { state = Mutex(State(path: path)) }

  func paths() -> AsyncStream<NetworkPath> {
    let (stream, continuation) = AsyncStream.makeStream(of: NetworkPath.self)
    let path = state.withLock { state in
      state.streams.append(continuation)
      return state.path
    }
    continuation.yield(path)
    return stream
  }

  /// Tells it, also when it is what it was.
  func tell(_ path: NetworkPath) {
    let streams = state.withLock { state in
      state.path = path
      return state.streams
    }
    for stream in streams { stream.yield(path) }
  }
}
