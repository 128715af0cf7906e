internal import CKapeDataPlane
import Glibc
internal import KapeProtocols

extension WireGuardDevice {
  /// What the device knows of itself: all of a report but what was set up around it.
  nonisolated func report(_ name: String, program: String) async -> InterfaceReport {
    var report = InterfaceReport(name: name, program: program)
    report.process = getpid()
    if let interface = try? await interface() {
      report.publicKey = interface.privateKey?.publicKey
      report.listenPort = interface.listenPort
      report.firewallMark = interface.firewallMark
    }
    report.backend = backend.rawValue
    report.threads = threads
    report.queues = tun.queues.count
    let fallbacks = activeFallbacks
    report.fallbacks = TunnelOptions.Fallbacks.names.filter { fallbacks.contains($0.value) }.map(\.name)
    report.peers = await allPeers().map(InterfaceReport.Peer.init)
    let statistics = worker.statistics()
    report.traffic = InterfaceReport.Traffic(statistics)
    report.counters = InterfaceReport.counters(statistics, worker.ioStatistics())
    return report
  }

  /// All peers; what comes in several chunks is put together.
  nonisolated func allPeers() async -> [WireGuardPeerStatus] {
    var peers: [WireGuardPeerStatus] = []
    var chunks = peerChunks()
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
}

extension InterfaceReport {
  /// Between the two looks that a rate is made of.
  private static let sampling: UInt64 = 250_000_000

  /// The second of two reports, with the rates between them.
  static func measured(
    isolation: isolated (any Actor)? = #isolation, _ take: () async -> InterfaceReport
  ) async -> InterfaceReport {
    let before = await take()
    let start = monotonicNow()
    try? await Task.sleep(for: .nanoseconds(sampling))
    var report = await take()
    report.measureRates(since: before, nanoseconds: monotonicNow() - start)
    return report
  }

  /// Those that are not zero. What ended in the engine and what ended in the I/O layer for the same reason is one
  /// number: a packet ends once.
  static func counters(_ engine: kdp_statistics, _ io: kdp_io_statistics) -> [Counter] {
    var counters: [Counter] = [
      .init("handshakes", engine.handshakes), .init("handshake_tries", engine.handshake_tries),
      .init("key_changes", engine.key_changes), .init("roams", engine.roams),
    ]
    withUnsafeBytes(of: engine.status) { engine in
      withUnsafeBytes(of: io.status) { io in
        let pairs = zip(engine.bindMemory(to: UInt64.self), io.bindMemory(to: UInt64.self))
        for (index, (first, second)) in pairs.enumerated() where index != Int(KDP_OK.rawValue) {
          let name = String(cString: kdp_status_describe(kdp_status(rawValue: UInt32(index))).pointee.name)
          counters.append(.init(name, first &+ second))
        }
      }
    }
    counters += [
      .init("tun_reads", io.tun_reads), .init("tun_writes", io.tun_writes), .init("udp_reads", io.udp_reads),
      .init("udp_sends", io.udp_sends), .init("segmented_sends", io.segmented_sends),
      .init("joined_reads", io.joined_reads), .init("joined_writes", io.joined_writes), .init("rounds", io.rounds),
      .init("waits", io.waits),
    ]
    return counters.filter { $0.value != 0 }
  }
}

extension InterfaceReport.Peer {
  fileprivate init(_ peer: WireGuardPeerStatus) {
    self.init(publicKey: peer.publicKey)
    hasPresharedKey = peer.presharedKey != nil
    endpoint = peer.endpoint
    allowedIPs = peer.allowedIPs
    persistentKeepalive = peer.persistentKeepalive
    latestHandshake = peer.lastHandshake
    hasSession = peer.hasSession
    receivedBytes = peer.receivedBytes
    sentBytes = peer.sentBytes
    insideReceivedBytes = peer.insideReceivedBytes
    insideSentBytes = peer.insideSentBytes
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
