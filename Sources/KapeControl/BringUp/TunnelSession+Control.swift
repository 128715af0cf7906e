internal import CKapeDataPlane
import Glibc
internal import KapeCrypto
internal import KapeProtocols

extension TunnelSession {
  /// Between the two looks that a rate is made of.
  private static let sampling: UInt64 = 250_000_000

  /// Everything but `down`.
  func answer(_ request: ControlRequest, _ client: ControlClient) async {
    var code: Int32 = 0
    switch request {
    case .statusText, .statusJSON:
      let report = await measuredReport()
      client.out(
        request == .statusJSON ? StatusJSON.text(report) : StatusText.text([report], now: Timestamp.now()))
    case .save:
      do {
        try await save()
        client.error("\(self.request.file.path) was written")
      } catch {
        client.error("\(error)")
        code = 1
      }
    case .down: break
    }
    client.finish(code)
  }

  // MARK: Status

  private func measuredReport() async -> InterfaceReport {
    let before = await report()
    let start = monotonicNow()
    try? await Task.sleep(for: .nanoseconds(Self.sampling))
    var report = await report()
    report.measureRates(since: before, nanoseconds: monotonicNow() - start)
    return report
  }

  private func report() async -> InterfaceReport {
    var report = InterfaceReport(name: name, program: "kape up")
    report.process = getpid()
    report.configurationFile = request.file.path
    report.upSince = upSince
    report.settings = settings
    report.warnings = warnings
    report.events = events
    guard let service else { return report }
    let device = service.device
    if let interface = try? await device.interface() {
      report.publicKey = interface.privateKey?.publicKey
      report.listenPort = interface.listenPort
      report.firewallMark = interface.firewallMark
    }
    report.backend = device.backend.rawValue
    let fallbacks = device.activeFallbacks
    report.fallbacks = TunnelOptions.Fallbacks.names.filter { fallbacks.contains($0.value) }.map(\.name)
    for peer in await peers() { report.peers.append(describe(peer)) }
    let statistics = device.worker.statistics()
    report.traffic = InterfaceReport.Traffic(statistics)
    report.counters = Self.counters(statistics)
    if let link = try? Netlink().link(at: index) { report.settings?.mtu = link.mtu }
    return report
  }

  private func describe(_ peer: WireGuardPeerStatus) -> InterfaceReport.Peer {
    var result = InterfaceReport.Peer(publicKey: peer.publicKey)
    result.hasPresharedKey = peer.presharedKey != nil
    result.endpoint = peer.endpoint
    result.endpointName = names.name(of: peer.publicKey)
    result.allowedIPs = peer.allowedIPs
    result.persistentKeepalive = peer.persistentKeepalive
    result.latestHandshake = peer.lastHandshake
    result.hasSession = peer.hasSession
    result.receivedBytes = peer.receivedBytes
    result.sentBytes = peer.sentBytes
    result.insideReceivedBytes = peer.insideReceivedBytes
    result.insideSentBytes = peer.insideSentBytes
    return result
  }

  /// All peers; what comes in several chunks is put together.
  private func peers() async -> [WireGuardPeerStatus] {
    guard let service else { return [] }
    var peers: [WireGuardPeerStatus] = []
    var chunks = service.device.peerChunks()
    while let chunk = try? await chunks.next() {
      chunk.visit { peer in
        if let last = peers.indices.last, peers[last].id == peer.id {
          peers[last].allowedIPs += peer.allowedIPs
        } else {
          peers.append(peer)
        }
      }
    }
    return peers
  }

  private static func counters(_ statistics: kdp_statistics) -> [InterfaceReport.Counter] {
    var counters: [InterfaceReport.Counter] = [
      .init("handshakes", statistics.handshakes), .init("handshake_tries", statistics.handshake_tries),
      .init("key_changes", statistics.key_changes), .init("roams", statistics.roams),
    ]
    withUnsafeBytes(of: statistics.status) { bytes in
      for (index, value) in bytes.bindMemory(to: UInt64.self).enumerated() where index != Int(KDP_OK.rawValue) {
        let name = String(cString: kdp_status_describe(kdp_status(rawValue: UInt32(index))).pointee.name)
        counters.append(.init(name, value))
      }
    }
    return counters.filter { $0.value != 0 }
  }

  // MARK: Saving

  /// Writes the configuration as it is now over the file that it came from.
  func save() async throws {
    guard let service else { throw Failure.failed("there is no interface") }
    let present = try await service.device.interface()
    var saved = configuration
    saved.interface.privateKey = present.privateKey
    saved.interface.listenPort = present.listenPort
    // The mark of a full tunnel is chosen anew each time.
    saved.interface.firewallMark =
      configuration.interface.firewallMark == 0 && present.firewallMark == settings.table ? 0 : present.firewallMark
    let addresses = try Netlink().addresses(of: index)
    saved.interface.addresses = addresses.filter { address in
      !address.address.isLinkLocal || configuration.interface.addresses.contains(address)
    }
    if configuration.interface.mtu != nil, let link = try Netlink().link(at: index) {
      saved.interface.mtu = UInt16(clamping: link.mtu)
    }
    let named = Dictionary(
      configuration.peers.map { ($0.publicKey, $0.endpoint) }, uniquingKeysWith: { first, _ in first })
    saved.peers = await peers().map { peer in
      var result = WireGuardConfiguration.Peer(publicKey: peer.publicKey)
      result.presharedKey = peer.presharedKey
      result.allowedIPs = peer.allowedIPs
      result.persistentKeepalive = peer.persistentKeepalive
      // A name outlives the address that it has now.
      if let endpoint = named[peer.publicKey] ?? nil, case .name = endpoint.host {
        result.endpoint = endpoint
      } else {
        result.endpoint = peer.endpoint.flatMap(WireGuardEndpoint.init)
      }
      return result
    }
    var text = SecretBuffer(capacity: 4096)
    saved.write(to: &text)
    try Self.replace(request.file.path, text)
  }

  /// By rename, so that there is always one whole file; readable for its owner only.
  private static func replace(_ path: String, _ text: borrowing SecretBuffer) throws(SystemError) {
    let scratch = path + ".kape-new"
    try Files.remove(scratch)
    let raw = open(scratch, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard raw >= 0 else { throw SystemError(scratch) }
    let file = Descriptor(owning: raw)
    let written = text.withBytes { bytes in
      bytes.withUnsafeBytes { bytes in
        var rest = bytes[...]
        while !rest.isEmpty {
          let part = UnsafeRawBufferPointer(rebasing: rest)
          guard let size = retrying({ write(raw, part.baseAddress, part.count) }) else { return false }
          rest = rest.dropFirst(size)
        }
        return true
      }
    }
    guard written, fsync(file.raw) == 0, rename(scratch, path) == 0 else {
      let error = SystemError(path)
      unlink(scratch)
      throw error
    }
  }
}

extension WireGuardEndpoint {
  fileprivate init?(_ address: SocketAddress) {
    guard let scoped = ScopedAddress(address.address, scope: address.scope == 0 ? nil : "\(address.scope)") else {
      return nil
    }
    self.init(host: .address(scoped), port: address.port)
  }
}

extension InterfaceReport.Traffic {
  fileprivate init(_ statistics: kdp_statistics) {
    func count(_ traffic: kdp_traffic) -> Count { Count(packets: traffic.packets, bytes: traffic.bytes) }
    self.init(
      insideReceived: count(statistics.inside_out), insideSent: count(statistics.inside_in),
      wireReceived: count(statistics.wire_in), wireSent: count(statistics.wire_out))
  }
}
