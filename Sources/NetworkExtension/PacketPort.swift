internal import KapeControl
internal import Synchronization

/// The packets of one tunnel's TUN as the platform's types. Nothing is opened before the first is asked for: an engine
/// that has the descriptor to itself is not disturbed.
final class PacketPort: Sendable {
  private let tun: HostedTun
  private let packets = Mutex<TunPackets?>(nil)

  init(_ tun: HostedTun) { self.tun = tun }

  private func opened() -> TunPackets? {
    packets.withLock { packets in
      if packets == nil { packets = try? TunPackets(duplicating: tun.descriptor) }
      return packets
    }
  }

  /// nil: the tunnel is gone.
  func read() async -> [NEPacket]? {
    guard let port = opened() else { return nil }
    return await port.next { bytes in
      let version = bytes[0] >> 4
      return NEPacket(data: Data(bytes), protocolFamily: sa_family_t(version == 6 ? AF_INET6 : AF_INET))
    }
  }

  func write(_ packets: [Data]) -> Bool {
    guard let port = opened() else { return false }
    var isWhole = true
    for packet in packets where !packet.withUnsafeBytes({ port.write($0) }) { isWhole = false }
    return isWhole
  }
}
