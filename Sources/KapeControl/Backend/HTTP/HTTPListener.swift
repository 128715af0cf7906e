internal import CMicroHTTPD
import Glibc
import KapeControl
import KapeProtocols
import Synchronization

/// Serves HTTP/1.1, with TLS 1.2 or 1.3 when it is given a certificate, on a thread of its own (libmicrohttpd). A request
/// waits suspended while its handler runs, so that the thread waits for nobody.
final class HTTPListener: Sendable {
  typealias Handler = @Sendable (HTTPRequest) async -> HTTPResponse
  /// For one whose body is not worth reading.
  typealias Refuser = @Sendable (HTTPRequest) -> HTTPResponse

  /// PEM, the certificate's chain after it.
  struct Identity: Sendable {
    var certificate: String
    var key: String
  }

  struct Limits: Sendable {
    var body = 64 << 10
    var connections: UInt32 = 512
    var connectionsOfAnAddress: UInt32 = 128
    /// Seconds without a byte.
    var silence: UInt32 = 30
  }

  /// A body is read and dropped up to so many times the limit, so that the answer reaches who sends it.
  static let patience = 16

  /// Where it listens; the port is a real one.
  let address: SocketAddress
  private let core: Core

  /// Everything that the callbacks need; the daemon holds on to it.
  final class Core: Sendable {
    let handler: Handler
    let refuser: Refuser
    let limits: Limits
    fileprivate let state = Mutex(State())

    fileprivate struct State {
      var daemon: Daemon?
      var running = 0
      var whenIdle: CheckedContinuation<Void, Never>?
      var isStopping = false
    }

    init(_ handler: @escaping Handler, _ refuser: @escaping Refuser, _ limits: Limits) {
      self.handler = handler
      self.refuser = refuser
      self.limits = limits
    }

    /// False: no more.
    func begin() -> Bool {
      state.withLock { state in
        if state.isStopping { return false }
        state.running += 1
        return true
      }
    }

    func end() {
      let waiting = state.withLock { state in
        state.running -= 1
        guard state.running == 0 else { return nil as CheckedContinuation<Void, Never>? }
        defer { state.whenIdle = nil }
        return state.whenIdle
      }
      waiting?.resume()
    }
  }

  /// `@unchecked Sendable`: libmicrohttpd guards what is behind it.
  fileprivate struct Daemon: @unchecked Sendable {
    let pointer: OpaquePointer
  }

  init(
    on socket: consuming ListeningSocket, identity: Identity? = nil, limits: Limits = Limits(),
    refuser: @escaping Refuser,
    handler: @escaping Handler
  ) throws {
    address = socket.address
    let listening = socket.release()
    core = Core(handler, refuser, limits)
    let context = Unmanaged.passRetained(core)
    let started = Self.start(listening, identity, limits, context.toOpaque())
    guard let started else {
      context.release()
      close(listening)
      throw SystemError(
        "\(address): libmicrohttpd does not start: memory, threads, or a key that is not the certificate's")
    }
    core.state.withLock { $0.daemon = Daemon(pointer: started) }
  }

  private static func start(
    _ listening: Int32, _ identity: Identity?, _ limits: Limits, _ context: UnsafeMutableRawPointer
  ) -> OpaquePointer? {
    var settings = cmicrohttpd_settings()
    settings.listening = listening
    settings.connections = limits.connections
    settings.connections_an_address = limits.connectionsOfAnAddress
    settings.timeout_s = limits.silence
    settings.memory = 32 << 10
    settings.context = context
    settings.begins = exchangeBegins
    settings.handles = exchangeHandles
    settings.ends = exchangeEnds
    guard let identity else { return cmicrohttpd_start(&settings) }
    return identity.key.withCString { key in
      identity.certificate.withCString { certificate in
        settings.key = key
        settings.certificate = certificate
        return cmicrohttpd_start(&settings)
      }
    }
  }

  /// Answers what is being worked on and stops.
  func stop() async {
    let core = self.core
    let daemon = core.state.withLock { state in
      state.isStopping = true
      defer { state.daemon = nil }
      return state.daemon
    }
    guard let daemon else { return }
    let listening = MHD_quiesce_daemon(daemon.pointer)
    await withCheckedContinuation { continuation in
      let isIdle = core.state.withLock { state in
        if state.running > 0 { state.whenIdle = continuation }
        return state.running == 0
      }
      if isIdle { continuation.resume() }
    }
    // Joins the daemon's thread.
    await onThreadOfItsOwn { MHD_stop_daemon(daemon.pointer) }
    if listening >= 0 { close(listening) }
    Unmanaged.passUnretained(core).release()
  }
}

/// Runs what blocks, on a thread of its own.
private func onThreadOfItsOwn(_ work: @escaping @Sendable () -> Void) async {
  let executor = QueueExecutor("kape.http.stop")
  await Runner(executor).run(work)
}

private actor Runner {
  private let executor: QueueExecutor
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  init(_ executor: QueueExecutor) { self.executor = executor }

  func run(_ work: @Sendable () -> Void) { work() }
}
