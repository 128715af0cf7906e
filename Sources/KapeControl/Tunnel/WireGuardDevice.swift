internal import CKapeDataPlane
import Glibc
package import KapeCrypto
package import KapeProtocols

/// A WireGuard interface: engine, packet path and TUN, with everything that can be asked of it while it runs. Everything
/// that concerns the engine happens on the worker's thread, by command; nothing here waits for packets or holds them up
/// for longer than some dozens of peers take.
package actor WireGuardDevice {
  /// Peers of a change that are applied in one command: a fraction of a millisecond.
  static let peersPerCommand = 64

  package nonisolated let tun: TunInterface
  /// That packets pass on.
  nonisolated let threads: Int
  nonisolated let worker: TunnelWorker
  private nonisolated let engine: TunnelEngine
  private nonisolated let options: TunnelOptions
  private nonisolated let sockets: GivenSockets?
  private nonisolated let keyLog: KeyLog?
  private let configuring = AsyncLock()
  private let peerLimit: UInt32
  /// What the interface is to be; the sockets may not be had.
  private var wantsUp = false
  private var isUp = false

  /// Makes the engine and the sockets. Nothing runs before `start`. Stamps of initiations are above `newestStamp` (wall
  /// time, ns).
  package init(
    tun: TunInterface, options: TunnelOptions, insideMTU: Int, keyLog: KeyLog? = nil, newestStamp: UInt64 = 0,
    sockets: GivenSockets? = nil
  ) throws(TunnelError) {
    self.tun = tun
    self.options = options
    self.sockets = sockets
    self.keyLog = keyLog
    threads = options.threads
    peerLimit = options.peerLimit
    var host = kdp_host_default()
    if let keyLog {
      host.context = Unmanaged.passUnretained(keyLog).toOpaque()
      host.keylog = { context, line, size in
        guard let context, let line else { return }
        Unmanaged<KeyLog>.fromOpaque(context).takeUnretainedValue()
          .append(UnsafeRawBufferPointer(start: line, count: size))
      }
    }
    var limits = kdp_limits()
    limits.peers = options.peerLimit
    limits.lanes = UInt32(options.threads)
    var engine: UnsafeMutablePointer<kdp_engine>?
    // What ran to get here, and the self tests of ciphers, each touch megabytes of code that are not needed again.
    kdp_process_release_clean_pages()
    defer { kdp_process_release_clean_pages() }
    errno = 0
    let status = withOptionalCString(options.aeadProvider) { provider in
      var config = kdp_wireguard_config()
      config.aead_provider = provider
      config.inside_mtu = UInt16(clamping: insideMTU)
      config.newest_stamp = newestStamp
      return kdp_wireguard_create(&config, &limits, &host, kdp_now_read(), &engine)
    }
    guard status == KDP_OK, let engine else { throw TunnelError("engine", status) }
    self.engine = TunnelEngine(owning: engine)
    worker = try TunnelWorker(
      engine: self.engine, tun: tun, options: options, keyLog: keyLog, sockets: sockets)
  }

  /// Goes on with the peers and sessions of another on another TUN; with sockets that were given, from the same ports,
  /// too. The other is at its end. Nothing runs before `start`.
  package init(continuing other: WireGuardDevice, tun: TunInterface) throws(TunnelError) {
    other.worker.end { _ in }
    self.tun = tun
    options = other.options
    sockets = other.sockets
    keyLog = other.keyLog
    engine = other.engine
    threads = other.threads
    peerLimit = other.peerLimit
    worker = try TunnelWorker(engine: engine, tun: tun, options: options, keyLog: keyLog, sockets: sockets)
  }

  /// Starts the worker, with the interface down.
  package func start() async throws(TunnelError) {
    try worker.start()
    try await setUp(false)
  }

  /// Ends the worker's thread soon; commands from now on fail with CLOSED.
  package nonisolated func stop() { worker.stop() }

  /// The same, and waits for that on a thread of its own.
  package nonisolated func stopAndWait() async {
    await withCheckedContinuation { continuation in
      let end: @Sendable () -> Void = { [worker] in
        worker.end { _ in }
        continuation.resume()
      }
      do { try startThread(stackSize: 64 * 1024, end) } catch { end() }
    }
  }

  /// The same, but waits for the thread (a round at most) and gives the newest stamp that was ever sent.
  nonisolated func stopAndTellNewestStamp() -> UInt64 { worker.end { kdp_wireguard_newest_stamp($0) } }

  // MARK: Interface

  /// Follows the interface: down, the sockets are closed; up, they are bound again. When they cannot be, the error says
  /// why, and the next change of the listen port tries again. True when something changed.
  @discardableResult
  package func follow(up: Bool) async throws(TunnelError) -> Bool {
    guard up != wantsUp || up != isUp else { return false }
    wantsUp = up
    try await setUp(up)
    return true
  }

  private func setUp(_ up: Bool) async throws(TunnelError) {
    try await worker.perform { lane in
      errno = 0
      return outcome("listen", kdp_worker_set_up(lane.worker, up))
    }
    isUp = up
  }

  package func setInsideMTU(_ mtu: Int) async throws(TunnelError) {
    try await worker.perform { lane in
      kdp_worker_set_inside_mtu(lane.worker, UInt16(clamping: mtu))
      return .success(())
    }
  }

  /// A new network, or awake again.
  package func networkChanged() async throws(TunnelError) {
    try await worker.perform { lane in
      kdp_engine_network_changed(kdp_engine_lane(lane.engine, 0), lane.out, lane.now)
      return .success(())
    }
  }

  // MARK: Configuration

  /// Applies a change: all of it or, with an error, nothing. (One with more than `peersPerCommand` peers goes in several
  /// commands, so that packets are not held up; what could be refused is checked before the first. Only when memory ends
  /// half way is it left half applied.)
  package func apply(_ change: WireGuardInterfaceChange) async throws(TunnelError) {
    let change = change.replacePeers ? change.resettingPeers() : change
    try await configuring.withLock { () async throws(TunnelError) in
      if change.peers.count > Self.peersPerCommand, try await canBeDivided(change) {
        try await applyDivided(change)
      } else {
        try await applyAtOnce(change, change.peers[...])
      }
    }
  }

  private func applyAtOnce(
    _ change: WireGuardInterfaceChange, _ peers: ArraySlice<WireGuardPeerChange>
  ) async throws(TunnelError) {
    let engineChange = WireGuardDataPlaneChange(change, withDevice: true, peers: peers)
    let port = change.listenPort
    let mark = change.firewallMark
    // A port that was not to be had is tried again when another is asked for.
    let retry = wantsUp && !isUp && port != nil
    try await worker.perform { lane in
      setSockets(lane, port: port, mark: mark, thenUp: retry) {
        applyChange(engineChange, lane)
      }
    }
    if retry { isUp = true }
  }

  private func applyDivided(_ change: WireGuardInterfaceChange) async throws(TunnelError) {
    var device = change
    device.replacePeers = false
    try await applyAtOnce(device, [])
    if change.replacePeers {
      let kept = Set(change.peers.lazy.filter { !$0.remove }.map(\.publicKey))
      let gone = try await publicKeys().filter { !kept.contains($0) }
      try await applyPeers(
        gone.map { key in
          var removal = WireGuardPeerChange(publicKey: key)
          removal.remove = true
          return removal
        })
    }
    try await applyPeers(change.peers)
  }

  private func applyPeers(_ peers: [WireGuardPeerChange]) async throws(TunnelError) {
    var rest = peers[...]
    while !rest.isEmpty {
      let engineChange = WireGuardDataPlaneChange(
        WireGuardInterfaceChange(), withDevice: false, peers: rest.prefix(Self.peersPerCommand))
      rest = rest.dropFirst(Self.peersPerCommand)
      try await worker.perform { lane in applyChange(engineChange, lane) }
    }
  }

  /// Whether nothing of it can be refused by the engine but for want of memory.
  private func canBeDivided(_ change: WireGuardInterfaceChange) async throws(TunnelError) -> Bool {
    guard !change.peers.contains(where: { $0.publicKey.isZero }) else { return false }
    let present = change.replacePeers ? 0 : try await peerCount()
    return present + change.peers.count <= Int(peerLimit)
  }

  // MARK: Questions

  /// The interface alone, without peers.
  package nonisolated func interface() async throws(TunnelError) -> WireGuardInterfaceStatus {
    try await worker.perform { lane in
      var info = kdp_wireguard_device_info()
      kdp_wireguard_device(lane.engine, &info)
      defer { withUnsafeMutableBytes(of: &info) { SecretMemory.wipe($0) } }
      return .success(
        WireGuardInterfaceStatus(
          privateKey: info.has_private_key
            ? withUnsafeBytes(of: info.private_key) { PrivateKey(bytes: $0.bytes) } : nil,
          listenPort: kdp_worker_port(lane.worker), firewallMark: kdp_worker_fwmark(lane.worker)))
    }
  }

  /// The newest stamp of an initiation, wall time in ns; 0: there was none.
  nonisolated func newestStamp() async throws(TunnelError) -> UInt64 {
    try await worker.perform { lane in .success(kdp_wireguard_newest_stamp(lane.engine)) }
  }

  package nonisolated func peerCount() async throws(TunnelError) -> Int {
    try await worker.perform { lane in
      var info = kdp_wireguard_device_info()
      kdp_wireguard_device(lane.engine, &info)
      defer { withUnsafeMutableBytes(of: &info) { SecretMemory.wipe($0) } }
      return .success(Int(info.peer_count))
    }
  }

  /// A peer by the number that events have, or by its key, without its prefixes; nil: there is none. Neither takes longer
  /// with many peers.
  nonisolated func peer(_ number: UInt64) async -> WireGuardPeerStatus? {
    guard number > 0 else { return nil }
    return await peer { engine, info in
      var cursor = number - 1
      return kdp_wireguard_next_peer(engine, &cursor, &info) && info.peer == number
    }
  }

  package nonisolated func peer(_ key: PublicKey) async -> WireGuardPeerStatus? {
    await peer { engine, info in
      key.withUnsafeBytes { bytes in
        guard let start = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return false }
        return kdp_wireguard_find_peer(engine, start, &info) == KDP_OK
      }
    }
  }

  private nonisolated func peer(
    _ find: @escaping @Sendable (UnsafeMutablePointer<kdp_engine>, inout kdp_wireguard_peer_info) -> Bool
  ) async -> WireGuardPeerStatus? {
    try? await worker.perform { lane in
      var info = kdp_wireguard_peer_info()
      defer { withUnsafeMutableBytes(of: &info) { SecretMemory.wipe($0) } }
      return .success(find(lane.engine, &info) ? WireGuardPeerStatus(dataPlane: info, allowedIPs: []) : nil)
    }
  }

  /// All peers, in chunks; peers may come and go between two of them, packets do not wait. The same chunk is filled anew
  /// each time.
  struct PeerChunks {
    fileprivate let worker: TunnelWorker
    private let chunk = PeerChunk()

    fileprivate init(worker: TunnelWorker) { self.worker = worker }

    mutating func next() async throws(TunnelError) -> PeerChunk? {
      if chunk.isLast { return nil }
      let chunk = self.chunk
      try await worker.perform { lane in
        chunk.fill(from: lane.engine)
        return .success(())
      }
      return chunk
    }
  }

  nonisolated func peerChunks() -> PeerChunks { PeerChunks(worker: worker) }

  private func publicKeys() async throws(TunnelError) -> [PublicKey] {
    var keys: [PublicKey] = []
    var chunks = peerChunks()
    while let chunk = try await chunks.next() {
      chunk.visit { peer in
        if !(chunk.continuesPeer && peer.publicKey == keys.last) { keys.append(peer.publicKey) }
      }
    }
    return keys
  }

  package nonisolated var backend: TunnelOptions.Backend { worker.backend }
  package nonisolated var activeFallbacks: TunnelOptions.Fallbacks { worker.activeFallbacks }

  /// Events as they come, until `body` returns false. One task at a time.
  package nonisolated func forEachEvent(_ reactor: Reactor, _ body: (TunnelEvent) async -> Bool) async throws {
    while true {
      while let event = worker.nextEvent() {
        if let event = TunnelEvent(event), await !body(event) { return }
      }
      try await reactor.readable(worker.eventDescriptor)
    }
  }
}

extension WireGuardInterfaceChange {
  /// `replace_peers` begins without any peer: what a peer of the list is not given it must not keep from before, and one
  /// that is only to be updated is not there to be. Peers that stay keep their sessions, and their endpoint until they
  /// are given another.
  func resettingPeers() -> WireGuardInterfaceChange {
    var present: Set<PublicKey> = []
    var result = self
    result.peers = peers.compactMap { peer in
      if peer.remove {
        present.remove(peer.publicKey)
        return peer
      }
      if present.contains(peer.publicKey) { return peer }
      if peer.updateOnly { return nil }
      present.insert(peer.publicKey)
      var peer = peer
      peer.presharedKey = peer.presharedKey ?? .zero
      peer.persistentKeepalive = peer.persistentKeepalive ?? 0
      peer.replaceAllowedIPs = true
      return peer
    }
    return result
  }
}

private func outcome(_ operation: String, _ status: kdp_status) -> Result<Void, TunnelError> {
  status == KDP_OK ? .success(()) : .failure(TunnelError(operation, status))
}

private func applyChange(_ change: WireGuardDataPlaneChange, _ lane: Lane) -> Result<Void, TunnelError> {
  withUnsafePointer(to: change.change) {
    outcome("configuration", kdp_wireguard_apply(lane.engine, $0, lane.out, lane.now))
  }
}

/// Sets port and mark and then does the rest; puts them back when it fails.
private func setSockets(
  _ lane: Lane, port: UInt16?, mark: UInt32?, thenUp: Bool, _ rest: () -> Result<Void, TunnelError>
) -> Result<Void, TunnelError> {
  let oldPort = kdp_worker_port(lane.worker)
  let oldMark = kdp_worker_fwmark(lane.worker)
  var undo: [() -> Void] = []
  func failing(_ result: Result<Void, TunnelError>) -> Result<Void, TunnelError>? {
    guard case .failure = result else { return nil }
    for step in undo.reversed() { step() }
    return result
  }

  errno = 0
  if let mark, mark != oldMark {
    if let failure = failing(outcome("fwmark", kdp_worker_set_fwmark(lane.worker, mark))) { return failure }
    undo.append { _ = kdp_worker_set_fwmark(lane.worker, oldMark) }
  }
  if let port, port != oldPort || port == 0 {
    if let failure = failing(outcome("listen_port", kdp_worker_set_port(lane.worker, port))) { return failure }
    undo.append { _ = kdp_worker_set_port(lane.worker, oldPort) }
  }
  if thenUp {
    if let failure = failing(outcome("listen_port", kdp_worker_set_up(lane.worker, true))) { return failure }
  }
  let result = rest()
  return failing(result) ?? result
}

func withOptionalCString<Result>(_ text: String?, _ body: (UnsafePointer<CChar>?) -> Result) -> Result {
  guard let text else { return body(nil) }
  return text.withCString { body($0) }
}
