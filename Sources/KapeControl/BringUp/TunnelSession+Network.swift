import Glibc
internal import KapeCrypto
internal import KapeProtocols

extension TunnelSession {
  // MARK: Events of the engine

  func take(_ event: TunnelEvent) async {
    switch event.kind {
    case .connected:
      let peer = await peer(event.peer)
      remember(peer)
      note("connected", ["peer": Self.label(peer), "endpoint": peer?.endpoint?.description ?? "-"])
    case .disconnected: note("disconnected", ["peer": Self.label(await peer(event.peer)), "reason": event.status])
    case .handshakeFailed:
      let peer = Self.label(await peer(event.peer))
      if let trouble = await service?.clockTrouble() {
        note("handshake_failed", ["peer": peer, "attempts": "\(event.value)", "possible_cause": trouble])
      } else {
        note("handshake_failed", ["peer": peer, "attempts": "\(event.value)"])
      }
    case .endpointChanged:
      let peer = await peer(event.peer)
      remember(peer)
      note("endpoint_changed", ["peer": Self.label(peer), "endpoint": peer?.endpoint?.description ?? "-"])
    case .rebound: note("rebound", ["status": event.status])
    case .underLoad: note("under_load", ["on": "\(event.value)"], isError: true)
    case .resolve: await lookUpAgain(event.peer)
    case .clockBack:
      note("clock_back", ["ns": "\(event.value)", "warning": ClockCheck.text(event.value)], isError: true)
    case .fallback:
      if let destination = event.address {
        let fields: KeyValuePairs<StaticString, String> = [
          "turned_off": event.turnedOff.list, "destination": destination.description,
        ]
        note("fallback", fields, isError: true)
      } else {
        note("fallback", ["turned_off": event.turnedOff.list], isError: true)
      }
    case .linkError: log.error("link_error", ["error": SystemError.text(of: Int32(clamping: event.value))])
    case .rekeyed: if !names.isEmpty { remember(await peer(event.peer)) }
    case .handshakeStarted, .prefixMoved, .insideGone: break
    }
  }

  /// An authentic message came from there.
  private func remember(_ peer: WireGuardPeerStatus?) {
    if let peer { names.connected(peer.publicKey, at: peer.endpoint) }
  }

  private static func label(_ peer: WireGuardPeerStatus?) -> String {
    peer.map { shortName(of: $0.publicKey) } ?? "-"
  }

  private func peer(_ number: UInt64) async -> WireGuardPeerStatus? { await service?.device.peer(number) }
  private func peer(_ key: PublicKey) async -> WireGuardPeerStatus? { await service?.device.peer(key) }

  // MARK: Names

  /// Handshakes with a peer keep failing: where does its name point now?
  private func lookUpAgain(_ id: UInt64) async {
    guard !names.isEmpty, let peer = await peer(id),
      let name = names.begin(peer.publicKey, received: peer.receivedBytes, now: monotonicNow())
    else {
      return
    }
    let key = peer.publicKey
    refreshResolver()
    let resolver = resolver
    let mark = await firewallMark()
    // Servers may take their time; events go on meanwhile.
    Task { [weak self] in
      do {
        guard let resolver else { throw UnderlayResolver.Failure(name: name, reason: "there is no name server") }
        await self?.finishLookUp(key, .success(try await resolver.addresses(of: name, mark: mark)))
      } catch {
        await self?.finishLookUp(key, .failure(error))
      }
    }
  }

  private func finishLookUp(_ key: PublicKey, _ result: Result<[IPAddress], any Error>) async {
    let status = await peer(key)
    let present = status?.endpoint
    let name = names.name(of: key) ?? ""
    let endpoint: SocketAddress?
    switch result {
    case .success(let addresses):
      let sorted = (try? sorted(addresses, await firewallMark())) ?? addresses
      endpoint = names.found(sorted, for: key, present: present)
      note("looked_up", ["name": name, "found": sorted.map(\.description).joined(separator: ",")])
    case .failure(let error):
      endpoint = names.failed(key, present: present)
      note("look_up_failed", ["name": name, "error": "\(error)", "trying": endpoint?.description ?? "-"])
    }
    guard let endpoint else { return }
    var change = WireGuardInterfaceChange()
    var peer = WireGuardPeerChange(publicKey: key)
    peer.updateOnly = true
    peer.endpoint = endpoint
    change.peers = [peer]
    do {
      try await service?.device.apply(change)
      names.tried(endpoint, for: key, received: status?.receivedBytes ?? 0)
      note("endpoint_set", ["name": name, "endpoint": endpoint.description])
    } catch {
      log.error("endpoint", ["error": "\(error)"])
    }
  }

  private func firewallMark() async -> UInt32 {
    (try? await service?.device.interface().firewallMark) ?? 0
  }

  /// A new network brings its own servers; while resolv.conf is ours, those that were there before are asked.
  private func refreshResolver() {
    let ours =
      settings.nameServiceMethod == NameServices.Method.file.rawValue
      ? (try? Files.read(NameServices.ours(in: directory.path))) ?? nil : nil
    // resolvconf and systemd-resolved write the tunnel's servers into it too.
    if settings.nameServiceMethod != nil && ours == nil { return }
    if let present = UnderlayResolver(unless: ours) { resolver = present }
  }

  // MARK: Changes of the network

  /// Tells the engine of new networks, and of nothing else.
  func followNetwork() async {
    do {
      let monitor = try NetworkMonitor()
      watch = UnderlayWatch(await underlay())
      while true {
        let changes = try await monitor.next(reactor)
        if changes.isEmpty || changes.contains(where: { $0.interface != index }) { networkNoticed() }
      }
    } catch is CancellationError {
      return
    } catch {
      warn("changes of the network are not followed: \(error)")
    }
  }

  private func networkNoticed() {
    let now = monotonicNow()
    watch?.notice(now: now)
    guard look == nil, let due = watch?.due else { return }
    look = Task { [weak self] in
      try? await Task.sleep(for: .nanoseconds(due > now ? due - now : 0))
      if !Task.isCancelled { await self?.lookAtNetwork() }
    }
  }

  private func lookAtNetwork() async {
    look = nil
    let present = await underlay()
    guard watch?.look(at: present, now: monotonicNow()) == true else { return }
    note("network_changed", [:])
    do {
      try await service?.device.networkChanged()
    } catch {
      log.error("network_changed", ["error": "\(error)"])
    }
  }

  private func underlay() async -> Underlay {
    guard let service else { return Underlay() }
    var endpoints: [SocketAddress] = []
    var chunks = service.device.peerChunks()
    while endpoints.count < 64, let chunk = try? await chunks.next() {
      chunk.visit { if let endpoint = $0.endpoint { endpoints.append(endpoint) } }
    }
    let mark = await firewallMark()
    do {
      return try Underlay(endpoints, mark: mark, Netlink())
    } catch {
      return Underlay()
    }
  }
}
