internal import CKapeDataPlane
import Glibc
import Synchronization

/// What a command may use while it runs on the worker's thread.
struct Lane {
  let worker: OpaquePointer
  let engine: UnsafeMutablePointer<kdp_engine>
  let out: UnsafeMutablePointer<kdp_out>
  let now: kdp_now
}

/// An engine, for as long as anybody has it. Called by one worker at a time.
final class TunnelEngine: @unchecked Sendable {
  let pointer: UnsafeMutablePointer<kdp_engine>

  init(owning pointer: UnsafeMutablePointer<kdp_engine>) { self.pointer = pointer }

  deinit { kdp_engine_destroy(pointer) }
}

/// UDP sockets that somebody else has made, for a tunnel to use instead of its own.
package final class GivenSockets: Sendable {
  /// That of IPv4 and that of IPv6; -1: none.
  let descriptors: [Int32]

  /// Takes the descriptors over.
  package init(ipv4: Int32?, ipv6: Int32?) {
    descriptors = [ipv4 ?? -1, ipv6 ?? -1]
  }

  deinit {
    for descriptor in descriptors where descriptor >= 0 { close(descriptor) }
  }
}

/// Owns the C worker that runs an engine between a TUN and the UDP sockets, on threads of its own.
///
/// Safe to share: the pointers do not change after `init`; the engine's lane 0 is called on its thread only, from
/// commands; the C functions used elsewhere are those that its header allows on any thread. Whoever has a command under
/// way holds a reference, so that nothing is freed under it.
final class TunnelWorker: @unchecked Sendable {
  private let engine: TunnelEngine
  private let worker: OpaquePointer
  private let tun: TunInterface
  private let keyLog: KeyLog?
  private let sockets: GivenSockets?
  private let started = Mutex(false)

  /// `engine` has no other worker.
  init(
    engine: TunnelEngine, tun: TunInterface, options: TunnelOptions, keyLog: KeyLog?, sockets: GivenSockets? = nil
  ) throws(TunnelError) {
    self.engine = engine
    self.sockets = sockets
    self.tun = tun
    self.keyLog = keyLog
    var host = kdp_host_default()
    var config = kdp_worker_config()
    config.engine = engine.pointer
    config.threads = UInt32(options.threads)
    config.tun = tun.queues.baseAddress
    config.queues = UInt32(tun.queues.count)
    config.backend =
      switch options.backend {
      case .auto: KDP_BACKEND_AUTO
      case .epoll: KDP_BACKEND_EPOLL
      case .uring: KDP_BACKEND_URING
      }
    config.fallbacks = options.fallbacks.rawValue
    var worker: OpaquePointer?
    errno = 0
    let status = (sockets?.descriptors ?? []).withUnsafeBufferPointer { given in
      if sockets != nil { config.sockets = given.baseAddress }
      return kdp_worker_create(&config, &host, &worker)
    }
    guard status == KDP_OK, let worker else { throw TunnelError("worker", status) }
    self.worker = worker
  }

  deinit {
    end { _ in }
    kdp_worker_destroy(worker)
  }

  /// Once, by whoever made it, before it is shared.
  func start() throws(TunnelError) {
    let status = kdp_worker_start(worker)
    guard status == KDP_OK else { throw TunnelError("worker", status) }
    started.withLock { $0 = true }
  }

  /// Asks the thread to end; it does so within a round.
  func stop() { kdp_worker_stop(worker) }

  /// The same, and waits for that; then the engine is the caller's to look at.
  func end<Result>(_ body: (UnsafePointer<kdp_engine>) -> Result) -> Result {
    started.withLock { started in
      kdp_worker_stop(worker)
      if started { kdp_worker_join(worker) }
      started = false
      return body(engine.pointer)
    }
  }

  /// Runs `body` on the worker's thread between two rounds and gives its result. It holds up packets while it runs:
  /// keep it short. Commands run in the order of submission.
  func perform<Result: Sendable>(
    _ body: @escaping @Sendable (Lane) -> Swift.Result<Result, TunnelError>
  ) async throws(TunnelError) -> Result {
    let result = await withCheckedContinuation { continuation in
      let command = Command { lane in
        continuation.resume(returning: lane.map(body) ?? .failure(TunnelError("worker", KDP_CLOSED)))
      }
      kdp_worker_submit(worker, command.node)
    }
    return try result.get()
  }

  var port: UInt16 { kdp_worker_port(worker) }
  var firewallMark: UInt32 { kdp_worker_fwmark(worker) }
  var activeFallbacks: TunnelOptions.Fallbacks { .init(rawValue: kdp_worker_active_fallbacks(worker)) }
  var backend: TunnelOptions.Backend { kdp_worker_backend(worker) == KDP_BACKEND_URING ? .uring : .epoll }

  /// Readable while there are events. One task takes them.
  var eventDescriptor: Int32 { kdp_worker_event_fd(worker) }

  func nextEvent() -> kdp_event? {
    var event = kdp_event()
    return kdp_worker_next_event(worker, &event) ? event : nil
  }

  func ioStatistics() -> kdp_io_statistics {
    var statistics = kdp_io_statistics()
    kdp_worker_statistics(worker, &statistics)
    return statistics
  }

  func statistics() -> kdp_statistics {
    var statistics = kdp_statistics()
    kdp_engine_statistics(engine.pointer, &statistics)
    return statistics
  }
}

/// A node of the worker's queue that frees itself after it has run.
private final class Command {
  let node: UnsafeMutablePointer<kdp_command>
  private let body: (Lane?) -> Void

  /// `body` gets nil when the worker ends before the command's turn comes.
  init(_ body: @escaping (Lane?) -> Void) {
    self.body = body
    node = .allocate(capacity: 1)
    node.initialize(to: kdp_command())
    node.pointee.context = Unmanaged.passRetained(self).toOpaque()
    node.pointee.run = { node, worker, engine, out, now, stopping in
      guard let node, let context = node.pointee.context else { return }
      let command = Unmanaged<Command>.fromOpaque(context).takeRetainedValue()
      if !stopping, let worker, let engine, let out {
        command.body(Lane(worker: worker, engine: engine, out: out, now: now))
      } else {
        command.body(nil)
      }
    }
  }

  deinit { node.deallocate() }
}
