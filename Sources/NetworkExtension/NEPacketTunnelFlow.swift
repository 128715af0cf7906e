internal import KapeControl
internal import Synchronization

/// The packets that the system sends into a tunnel, and those that come out of it: IP packets, whole, without any header
/// in front.
open class NEPacketTunnelFlow: NSObject, @unchecked Sendable {
  private let port = Mutex<PacketPort?>(nil)

  func attach(_ tun: HostedTun?) {
    let made = tun.flatMap { PacketPort($0) }
    port.withLock { $0 = made }
  }

  private var current: PacketPort? { port.withLock { $0 } }

  /// Waits for packets and gives those that are there, with the family of each (`AF_INET` or `AF_INET6`). Once per call;
  /// call it again for more. When the tunnel is gone it is not called any more.
  open func readPackets(completionHandler: @escaping ([Data], [NSNumber]) -> Void) {
    let handler = Unshared(completionHandler)
    Task {
      guard let packets = await current?.read() else { return }
      handler.value(packets.map(\.data), packets.map { NSNumber(value: $0.protocolFamily) })
    }
  }

  /// The same for callers that wait; empty when the tunnel is gone.
  public func readPackets() async -> ([Data], [NSNumber]) {
    let packets = await current?.read() ?? []
    return (packets.map(\.data), packets.map { NSNumber(value: $0.protocolFamily) })
  }

  /// The same as objects.
  open func readPacketObjects(completionHandler: @escaping ([NEPacket]) -> Void) {
    let handler = Unshared(completionHandler)
    Task {
      guard let packets = await current?.read() else { return }
      handler.value(packets)
    }
  }

  public func readPacketObjects() async -> [NEPacket] { await current?.read() ?? [] }

  /// Hands packets to the system as if they had been received. False when there is no tunnel, when the two arrays differ
  /// in length, or when the system refused one; the others are delivered all the same.
  @discardableResult
  open func writePackets(_ packets: [Data], withProtocols protocols: [NSNumber]) -> Bool {
    guard packets.count == protocols.count, let port = current else { return false }
    return port.write(packets)
  }

  @discardableResult
  open func writePacketObjects(_ packets: [NEPacket]) -> Bool { current?.write(packets.map(\.data)) ?? false }
}

/// One IP packet and its family.
open class NEPacket: NSObject, @unchecked Sendable {
  public let data: Data
  /// AF_INET or AF_INET6.
  public let protocolFamily: sa_family_t

  public init(data: Data, protocolFamily: sa_family_t) {
    self.data = data
    self.protocolFamily = protocolFamily
  }
}
