internal import CLinux
import Glibc
internal import KapeCrypto
internal import KapeProtocols

/// A WireGuard interface with its configuration socket, as wireguard-go serves one: from the interface's making to its
/// end, following what is done to the interface meanwhile.
package final class WireGuardService: Sendable {
  package struct Request: Sendable {
    package var interface: String
    package var options: TunnelOptions
    /// A TUN that is open already; the service closes it.
    package var tunDescriptor: Int32?
    /// A configuration socket that listens already; the service closes it.
    package var socketDescriptor: Int32?
    package var mtu = 1420
    package var keyLog: KeyLog?
    /// Whether it answers 'kape status' on a socket of its own, beside the configuration socket.
    package var answersStatus = false
    /// A file that it is configured by, if there is one: the clock was once where that says.
    package var configurationFile: String?
    /// nil: one of its own.
    package var reactor: Reactor?

    package init(interface: String, options: TunnelOptions) {
      self.interface = interface
      self.options = options
    }
  }

  /// Why it cannot be had, for people; the cases are those of the program's exit codes.
  package enum Failure: Error, Equatable {
    case inUse(String)
    case missing(String)
    case failed(String)
  }

  /// Why it ended.
  package enum Ending: Equatable, Sendable {
    case signal(Int32)
    case socketRemoved
    case interfaceGone
    case failed(String)
  }

  package let interface: String
  package let device: WireGuardDevice
  private let socket: ConfigurationSocket
  private let server: ConfigurationServer
  private let reactor: Reactor
  private let log: EventLog
  private let stamps: StampFile
  /// When the files were changed that this runs from.
  private let filesChanged: [UInt64]
  private let upSince = Timestamp.now()
  private let statusPath: String?
  private let status: ControlSocket?

  /// Makes interface and socket and starts the packet path. Configuration is answered once `run` is under way; who
  /// connects before that waits.
  package init(_ request: Request, log makeLog: (_ interface: String) -> EventLog) async throws(Failure) {
    let tun = try Self.openTun(request)
    interface = tun.name
    log = makeLog(tun.name)
    socket = try Self.openSocket(request, tun)
    stamps = StampFile(folder: StampFile.folder, interface: tun.name)
    filesChanged = (["/proc/self/exe"] + (request.configurationFile.map { [$0] } ?? [])).map(ClockCheck.changed)
    do throws(SystemError) {
      try tun.setMTU(request.mtu)
    } catch {
      // One that was handed over may be in another namespace, where its owner sets it.
      guard request.tunDescriptor != nil else { throw Self.failure(error) }
    }
    do throws(TunnelError) {
      device = try WireGuardDevice(
        tun: tun, options: request.options, insideMTU: request.mtu, keyLog: request.keyLog,
        newestStamp: stamps.kept)
      try await device.start()
    } catch {
      throw .failed(error.description)
    }
    do throws(SystemError) {
      if let given = request.reactor { reactor = given } else { reactor = try Reactor() }
    } catch { throw .failed(error.description) }
    server = ConfigurationServer(socket: socket, device: device, reactor: reactor, log: log)
    statusPath = request.answersStatus ? StatusSocket.path(beside: socket.path) : nil
    do throws(SystemError) {
      status = try statusPath.map { path throws(SystemError) in try ControlSocket(path) }
    } catch {
      // The configuration socket may have been handed over, in a folder that is not ours.
      log.verbose("no_status_socket", ["error": error.description])
      status = nil
    }
    log.verbose(
      "started",
      [
        "backend": device.backend.rawValue, "fallbacks": device.activeFallbacks.list, "socket": socket.path,
        "threads": String(device.threads), "queues": String(device.tun.queues.count),
      ])
  }

  deinit { device.stop() }

  /// Serves until something ends it, and takes the socket along. `observer` is told of every event, and then it is the
  /// one to log them.
  package func run(
    _ signals: TerminationSignals?, observer: (@Sendable (TunnelEvent) async -> Void)? = nil
  ) async -> Ending {
    let ending = await withTaskGroup(of: Ending.self) { group in
      if let signals { group.addTask { await self.ending { .signal(try await signals.next(self.reactor)) } } }
      group.addTask {
        await self.ending {
          try await self.socket.removed(self.reactor)
          return .socketRemoved
        }
      }
      group.addTask { await self.ending { try await self.followLink() } }
      group.addTask { await self.ending { try await self.followEvents(observer) } }
      group.addTask {
        await self.ending {
          try await self.server.run()
          return .failed("the configuration socket")
        }
      }
      group.addTask {
        await self.ending {
          while true {
            try await Task.sleep(for: .seconds(60))
            await self.keepStamp()
          }
        }
      }
      if let status { group.addTask { await self.ending { try await self.answer(status) } } }
      let first = await group.next() ?? .failed("nothing to do")
      group.cancelAll()
      return first
    }
    if status != nil, let statusPath { unlink(statusPath) }
    socket.unlinkIfOurs()
    keep(device.stopAndTellNewestStamp())
    log.verbose("ended", ["reason": "\(ending)"])
    return ending
  }

  private func ending(_ body: () async throws -> Ending) async -> Ending {
    do { return try await body() } catch { return .failed("\(error)") }
  }

  // MARK: The clock

  /// Now and then, and not only at the end: a process may be killed.
  private func keepStamp() async {
    if let stamp = try? await device.newestStamp() { keep(stamp) }
  }

  private func keep(_ stamp: UInt64) {
    do throws(SystemError) {
      try stamps.keep(stamp)
    } catch {
      log.verbose("stamp_not_kept", ["error": error.description])
    }
  }

  /// Why handshakes may fail although everything else is right; nil: the clock is not known to be wrong.
  func clockTrouble() async -> String? {
    let newest = (try? await device.newestStamp()) ?? 0
    let behind = ClockCheck.behind(filesChanged + [newest], now: Timestamp.now())
    return behind == 0 ? nil : ClockCheck.text(behind)
  }

  /// Tells of the interface; nothing else can be asked for.
  private func answer(_ status: ControlSocket) async throws -> Ending {
    try await status.run(reactor) { request, client in
      guard request == .statusText || request == .statusJSON else { return client.finish(1) }
      var report = await InterfaceReport.measured { await self.device.report(self.interface, program: "kape wg") }
      report.upSince = self.upSince
      client.out(request == .statusJSON ? StatusJSON.text(report) : StatusText.text([report], now: Timestamp.now()))
      client.finish(0)
    }
    return .failed("the status socket")
  }

  // MARK: The interface

  private func followLink() async throws -> Ending {
    while true {
      switch monitor() {
      case .success(let monitor): try await follow(monitor)
      case .failure(let error):
        guard device.tun.isAttached else { return .interfaceGone }
        // In a namespace that we may not enter: look at it now and then.
        log.error("link_not_followed", ["error": "\(error)"])
        return try await pollLink()
      }
      guard device.tun.isAttached else { return .interfaceGone }
      log.verbose("interface_moved")
    }
  }

  private func monitor() -> Result<LinkMonitor, any Error> { Result { try device.tun.monitor() } }

  /// Until the interface is gone from where the monitor looks.
  private func follow(_ monitor: LinkMonitor) async throws {
    var changes = [try monitor.present()]
    while true {
      for change in changes {
        switch change {
        case .state(let state): await follow(state)
        case .gone: return
        }
      }
      changes = try await monitor.next(reactor)
    }
  }

  private func pollLink() async throws -> Ending {
    while let isUp = device.tun.probe() {
      await follow(isUp: isUp)
      try await Task.sleep(for: .seconds(1))
    }
    return .interfaceGone
  }

  private func follow(_ state: LinkState) async {
    do {
      try await device.setInsideMTU(state.mtu)
    } catch  where error.isClosed {
      return
    } catch {
      log.error("mtu", ["error": "\(error)"])
    }
    await follow(isUp: state.isUp)
  }

  private func follow(isUp: Bool) async {
    do {
      if try await device.follow(up: isUp) { log.verbose(isUp ? "up" : "down") }
    } catch  where error.isClosed {
      // The interface goes when its worker has ended.
    } catch {
      log.error("up", ["error": "\(error)"])
    }
  }

  // MARK: Events

  private func followEvents(_ observer: (@Sendable (TunnelEvent) async -> Void)?) async throws -> Ending {
    var isGone = false
    try await device.forEachEvent(reactor) { event in
      if event.lost > 0 { log.error("events_lost", ["count": String(event.lost)]) }
      if event.kind == .insideGone { isGone = true }
      if let observer { await observer(event) } else { await tell(event) }
      return !isGone
    }
    return isGone ? .interfaceGone : .failed("the event queue")
  }

  private func tell(_ event: TunnelEvent) async {
    switch event.kind {
    case .insideGone: break
    case .fallback:
      if let destination = event.address {
        log.error("fallback", ["turned_off": event.turnedOff.list, "destination": destination.description])
      } else {
        log.error("fallback", ["turned_off": event.turnedOff.list])
      }
    case .linkError: log.error("link_error", ["error": SystemError.text(of: Int32(clamping: event.value))])
    case .clockBack: log.error("clock_back", ["ns": String(event.value), "warning": ClockCheck.text(event.value)])
    case .underLoad: log.error("under_load", ["on": String(event.value)])
    case .handshakeStarted, .handshakeFailed, .connected, .rekeyed, .disconnected, .endpointChanged, .prefixMoved,
      .rebound, .resolve:
      guard log.level == .verbose else { break }
      if event.kind == .handshakeFailed, let trouble = await clockTrouble() {
        let name = await name(of: event.peer)
        log.verbose("handshake_failed", ["peer": name, "reason": event.status, "possible_cause": trouble])
        break
      }
      await log.peerEvent(event, name: name(of: event.peer))
    }
  }

  /// What the log calls a peer: the ends of its public key.
  private func name(of peer: UInt64) async -> String {
    if peer == 0 { return "-" }
    return await device.peer(peer).map { shortName(of: $0.publicKey) } ?? "#\(peer)"
  }

  // MARK: Making

  private static func openTun(_ request: Request) throws(Failure) -> TunInterface {
    let tun = try openQueues(request)
    let threads = request.options.threads
    guard tun.queues.count == threads || threads == 2 else {
      throw .inUse(
        "\(tun.name) was made with one queue, which two threads can share at most; make it with "
          + "'ip tuntap add \(tun.name) mode tun multi_queue', or let kape make it")
    }
    return tun
  }

  private static func openQueues(_ request: Request) throws(Failure) -> TunInterface {
    let options = request.options
    do throws(TunInterface.Failure) {
      if let descriptor = request.tunDescriptor {
        return try TunInterface(adopting: descriptor, fallbacks: options.fallbacks.rawValue)
      }
      return try TunInterface.open(
        name: request.interface, fallbacks: options.fallbacks.rawValue, queues: options.threads)
    } catch {
      switch error {
      case .busy:
        throw .inUse(
          "\(request.interface) is held by "
            + text(of: ConfigurationSocket.holder(of: request.interface), request.interface))
      case .system(let error):
        if error.code == EINVAL, if_nametoindex(request.interface) != 0 {
          throw .inUse("there is an interface \(request.interface) already, and it is no TUN that we could serve")
        }
        throw failure(error)
      }
    }
  }

  private static func openSocket(_ request: Request, _ tun: TunInterface) throws(Failure) -> ConfigurationSocket {
    do throws(ConfigurationSocket.Failure) {
      if let descriptor = request.socketDescriptor {
        return try ConfigurationSocket(adopting: descriptor, interface: tun.name)
      }
      return try ConfigurationSocket(interface: tun.name)
    } catch {
      switch error {
      case .inUse(let holder):
        throw .inUse(ConfigurationSocket.path(of: tun.name) + " is held by " + text(of: holder, tun.name))
      case .system(let error): throw failure(error)
      }
    }
  }

  /// Who opened a socket may have handed it on and ended (wireguard-go does), and its number may be another's by now:
  /// whoever has the TUN is right.
  private static func text(of holder: SocketHolder?, _ interface: String) -> String {
    let holders = SocketHolder.ofTun(named: interface)
    if let holder, holders.contains(holder) || (holders.isEmpty && holder.isAlive) { return holder.description }
    return holders.first?.description ?? "another process"
  }

  private static func failure(_ error: SystemError) -> Failure {
    switch error.code {
    case EPERM, EACCES: .missing("\(error) (it takes CAP_NET_ADMIN, and /var/run/wireguard to be writable)")
    case ENOENT, ENODEV, ENXIO: .missing("\(error) (is there a /dev/net/tun, and the module tun?)")
    default: .failed(error.description)
    }
  }
}

extension EventLog {
  fileprivate func peerEvent(_ event: TunnelEvent, name: String) {
    switch event.kind {
    case .handshakeStarted: verbose("handshake_started", ["peer": name, "attempt": String(event.value)])
    case .handshakeFailed: verbose("handshake_failed", ["peer": name, "reason": event.status])
    case .connected: verbose("connected", ["peer": name])
    case .rekeyed: verbose("rekeyed", ["peer": name])
    case .disconnected: verbose("disconnected", ["peer": name, "reason": event.status])
    case .endpointChanged: verbose("endpoint_changed", ["peer": name])
    case .prefixMoved: verbose("prefix_moved", ["to": name])
    case .rebound: verbose("rebound", ["status": event.status])
    case .resolve: verbose("endpoint_unanswered", ["peer": name])
    case .underLoad, .clockBack, .fallback, .linkError, .insideGone: break
    }
  }
}

/// The ends of a public key, as log lines have them.
func shortName(of key: PublicKey) -> String {
  let text = key.base64
  return text.prefix(4) + ".." + text.suffix(5)
}
