import Foundation
import KapeControl
import KapeProtocols

/// A WireGuard connection by our own engine: first without an interface, until the handshake is complete, so that a
/// server which does not answer takes nothing from the machine's network; then with it.
actor WireGuardEngineDriver: WireGuardDriver {
  private static let lookInterval = Duration.seconds(3)

  private let tasks: TaskEnvironment
  private let logger: any PacketTunnelLogger
  private var device: WireGuardDevice?
  /// Until there is an interface.
  private var placeholder: PlaceholderTun?
  private var reactor: Reactor?
  private var setup: WireGuardSetup?
  private var verdict = WireGuardVerdict()
  private var following: Task<Void, Never>?
  private var looking: Task<Void, Never>?
  private var handshake = Signal<Void>()
  private var end = Signal<PacketTunnelError?>()
  private var isStopped = false

  init(tasks: TaskEnvironment, logger: any PacketTunnelLogger) {
    self.tasks = tasks
    self.logger = logger
  }

  // MARK: Connecting

  func connect(_ setup: WireGuardSetup, socket: PacketTunnelSocket) async throws {
    let isIPv4 = setup.endpoint.address.family == .ipv4
    let sockets = GivenSockets(ipv4: isIPv4 ? socket.descriptor : nil, ipv6: isIPv4 ? nil : socket.descriptor)
    guard !isStopped else { throw CancellationError() }
    self.setup = setup
    do {
      let placeholder = try PlaceholderTun()
      self.placeholder = placeholder
      reactor = try Reactor()
      var options = try TunnelOptions { variable($0) }
      options.peerLimit = 1
      let device = try WireGuardDevice(
        tun: placeholder.engineEnd, options: options, insideMTU: setup.mtu, sockets: sockets)
      self.device = device
      try await device.start()
      follow(device)
      try await device.apply(setup.change)
      try await device.follow(up: true)
    } catch {
      await stop()
      throw PacketTunnelError.tunnelSetupFailed("the WireGuard engine: \(loggable(error))")
    }
    do {
      try await handshake.wait()
    } catch {
      await stop()
      throw error
    }
  }

  func attach(_ interface: PacketTunnelInterface) async throws {
    let tun: TunInterface
    do {
      tun = try TunInterface(adopting: interface.descriptor, fallbacks: 0)
    } catch {
      close(interface.descriptor)
      throw PacketTunnelError.tunnelSetupFailed("the interface \(interface.name): \(loggable(error))")
    }
    guard let old = device else { throw CancellationError() }
    following?.cancel()
    await following?.value
    await old.stopAndWait()
    placeholder = nil
    do {
      guard !isStopped else { throw CancellationError() }
      let device = try WireGuardDevice(continuing: old, tun: tun)
      self.device = device
      try await device.start()
      follow(device)
      try await device.follow(up: true)
      if let mtu = setup?.mtu { try await device.setInsideMTU(mtu) }
    } catch {
      await stop()
      if error is CancellationError { throw error }
      throw PacketTunnelError.tunnelSetupFailed("the interface \(interface.name): \(loggable(error))")
    }
    look()
  }

  // MARK: Following

  private func follow(_ device: WireGuardDevice) {
    guard let reactor else { return }
    following = tasks.spawn { [weak self] in
      do {
        try await device.forEachEvent(reactor) { event in
          guard let self else { return false }
          return await self.take(event)
        }
      } catch {
        if !(error is CancellationError) {
          await self?.finish(.tunnelSetupFailed("the engine's events: \(loggable(error))"))
        }
      }
    }
  }

  private func take(_ event: TunnelEvent) -> Bool {
    logger.trace("WireGuard: \(event.kind.rawValue) \(event.status) \(event.value)")
    act(on: verdict.take(event, at: tasks.clock.now))
    return !isStopped
  }

  private func act(on change: WireGuardVerdict.Change?) {
    switch change {
    case nil: break
    case .connected:
      logger.debug("WireGuard: handshake complete")
      handshake.fire(.success(()))
    case .over(let error): finish(error)
    }
  }

  /// Counters, now and then, for as long as it is up.
  private func look() {
    looking = tasks.spawn { [weak self, tasks] in
      while !Task.isCancelled {
        guard (try? await tasks.sleep(for: Self.lookInterval)) != nil else { return }
        await self?.lookAtCounters()
      }
    }
  }

  private func lookAtCounters() async {
    guard let peer = await peer() else { return }
    act(on: verdict.look(sent: peer.insideSentBytes, received: peer.receivedBytes, at: tasks.clock.now))
  }

  private func peer() async -> WireGuardPeerStatus? {
    guard let device, let key = setup?.serverKey else { return nil }
    return await device.peer(key)
  }

  private func finish(_ error: PacketTunnelError) {
    logger.debug("WireGuard: \(loggable(error))")
    handshake.fire(.failure(error))
    end.fire(.success(error))
  }

  // MARK: Running and ending

  func run() async -> PacketTunnelError? {
    do { return try await end.wait() } catch { return nil }
  }

  func stop() async {
    isStopped = true
    handshake.fire(.failure(CancellationError()))
    end.fire(.success(nil))
    looking?.cancel()
    following?.cancel()
    guard let device else { return }
    self.device = nil
    await following?.value
    await device.stopAndWait()
  }

  func currentDataUsage() async -> PacketTunnelDataUsage? {
    await peer().map { PacketTunnelDataUsage(bytesReceived: $0.receivedBytes, bytesSent: $0.sentBytes) }
  }
}

/// Stands for a TUN where there is none yet: nothing comes in by it, and what comes out is lost.
private final class PlaceholderTun: Sendable {
  let engineEnd: TunInterface
  private let other: Int32

  init() throws {
    var ends: [Int32] = [-1, -1]
    let kind = Int32(SOCK_SEQPACKET.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
    guard socketpair(AF_UNIX, kind, 0, &ends) == 0 else {
      throw PacketTunnelError.tunnelSetupFailed("no socket pair: \(String(cString: strerror(errno)))")
    }
    other = ends[1]
    do {
      engineEnd = try TunInterface(adopting: ends[0], fallbacks: 0)
    } catch {
      close(ends[0])
      close(ends[1])
      throw PacketTunnelError.tunnelSetupFailed("\(error)")
    }
  }

  deinit { close(other) }
}
