@preconcurrency import Dispatch
import Foundation
import NetworkExtension

/// Gives an engine a descriptor for packets that go through a provider's `packetFlow`: a socket pair on which each
/// message is one IP packet. What does not fit into the socket's buffer is dropped, as a full interface would.
final class PacketFlowBridge: Sendable {
  private let engine: End
  private let source: any DispatchSourceRead
  private let queue = DispatchQueue(label: "kape.packet-flow", qos: .userInitiated)

  /// Throws `PacketTunnelError.tunnelSetupFailed`.
  init(_ flow: NEPacketTunnelFlow) throws {
    var ends: [Int32] = [-1, -1]
    let flags = Int32(SOCK_SEQPACKET.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
    guard socketpair(AF_UNIX, flags, 0, &ends) == 0 else {
      throw PacketTunnelError.tunnelSetupFailed("no socket pair for packets: \(String(cString: strerror(errno)))")
    }
    let ours = End(ends[0])
    engine = End(ends[1])
    let source = DispatchSource.makeReadSource(fileDescriptor: ours.descriptor, queue: queue)
    source.setEventHandler { if !Self.deliver(from: ours.descriptor, to: flow) { source.cancel() } }
    // Holds the end until the source has let go of its descriptor.
    source.setCancelHandler { _ = ours }
    source.activate()
    self.source = source
    Self.forward(flow, to: ours, while: source, on: queue)
  }

  /// Asks for packets again and again, until the source is cancelled or the flow answers no more.
  private static func forward(
    _ flow: NEPacketTunnelFlow, to end: End, while source: any DispatchSourceRead, on queue: DispatchQueue
  ) {
    queue.async {
      guard !source.isCancelled else { return }
      flow.readPackets { packets, _ in
        for packet in packets {
          _ = packet.withUnsafeBytes { send(end.descriptor, $0.baseAddress, $0.count, noSignal) }
        }
        forward(flow, to: end, while: source, on: queue)
      }
    }
  }

  deinit {
    close()
  }

  /// Closed when nobody uses it any more.
  private final class End: Sendable {
    let descriptor: Int32
    init(_ descriptor: Int32) { self.descriptor = descriptor }
    deinit { Foundation.close(descriptor) }
  }

  private static let noSignal = Int32(MSG_NOSIGNAL)
  private static let batch = 64

  /// False: the other end is closed.
  private static func deliver(from socket: Int32, to flow: NEPacketTunnelFlow) -> Bool {
    var packets: [Data] = []
    var families: [NSNumber] = []
    var isOpen = true
    while packets.count < batch {
      var packet = Data(count: 65_535)
      let size = packet.withUnsafeMutableBytes { recv(socket, $0.baseAddress, $0.count, 0) }
      guard size > 0 else {
        isOpen = size < 0 && (errno == EAGAIN || errno == EINTR)
        break
      }
      packet.count = size
      families.append(NSNumber(value: packet[packet.startIndex] >> 4 == 6 ? AF_INET6 : AF_INET))
      packets.append(packet)
    }
    if !packets.isEmpty { flow.writePackets(packets, withProtocols: families) }
    return isOpen
  }

  /// The end for an engine: the taker's own, to be closed by it.
  func engineEnd() throws -> Int32 {
    let own = fcntl(engine.descriptor, F_DUPFD_CLOEXEC, 0)
    guard own >= 0 else {
      throw PacketTunnelError.tunnelSetupFailed("no descriptor for packets: \(String(cString: strerror(errno)))")
    }
    return own
  }

  func close() {
    source.cancel()
  }
}
