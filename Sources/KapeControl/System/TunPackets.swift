internal import CLinux
import Glibc

/// Packets of a TUN one by one, for who wants to see them: whole, with complete checksums, without a header in front.
/// The engines have their own way, by batches.
package final class TunPackets: Sendable {
  private static let largest = 65_535
  /// As many as are given at once: enough to be quick, few enough not to hold much.
  private static let batch = 64

  private let tun: Descriptor
  private let reactor: Reactor
  /// Bytes of the virtio-net header before each packet; 0 when there is none.
  private let headerSize: Int

  /// Takes a duplicate. Turns the interface's offloads off, since packets are not split or finished here.
  package init(duplicating descriptor: Int32) throws(SystemError) {
    let raw = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
    guard raw >= 0 else { throw SystemError("fcntl") }
    tun = Descriptor(owning: raw)
    try tun.setNonBlocking()
    var request = TunRequest()
    guard clinux_ioctl(raw, UInt(CLINUX_TUNGETIFF), &request) == 0 else { throw SystemError("ioctl(TUNGETIFF)") }
    if Int32(request.flags) & Int32(CLINUX_IFF_VNET_HDR) == 0 {
      headerSize = 0
    } else {
      var size: Int32 = 0
      guard clinux_ioctl(raw, UInt(CLINUX_TUNGETVNETHDRSZ), &size) == 0, size > 0, size <= 64 else {
        throw SystemError("ioctl(TUNGETVNETHDRSZ)")
      }
      guard clinux_ioctl(raw, UInt(CLINUX_TUNSETOFFLOAD), nil) == 0 else { throw SystemError("ioctl(TUNSETOFFLOAD)") }
      headerSize = Int(size)
    }
    reactor = try Reactor()
  }

  /// Waits for a packet and gives it with those that are there, each as `make` sees it: valid during that call only.
  /// nil: the interface is gone, or the task was cancelled.
  package func next<Packet>(_ make: (UnsafeRawBufferPointer) -> Packet) async -> [Packet]? {
    while true {
      switch take(make) {
      case .packets(let packets): return packets
      case .gone: return nil
      case .none: break
      }
      do { try await reactor.readable(tun.raw) } catch { return nil }
    }
  }

  private enum Found<Packet> {
    case packets([Packet])
    case none
    case gone
  }

  private func take<Packet>(_ make: (UnsafeRawBufferPointer) -> Packet) -> Found<Packet> {
    withUnsafeTemporaryAllocation(byteCount: Self.largest + headerSize, alignment: 16) { buffer in
      var packets: [Packet] = []
      while packets.count < Self.batch {
        guard let size = retrying({ read(tun.raw, buffer.baseAddress, buffer.count) }) else {
          if !packets.isEmpty { break }
          return errno == EAGAIN ? .none : .gone
        }
        if size > headerSize { packets.append(make(UnsafeRawBufferPointer(rebasing: buffer[headerSize..<size]))) }
      }
      return packets.isEmpty ? .none : .packets(packets)
    }
  }

  /// False: the system took it not, because it is no packet, or the interface is down or gone.
  package func write(_ packet: UnsafeRawBufferPointer) -> Bool {
    guard !packet.isEmpty, packet.count <= Self.largest else { return false }
    return withUnsafeTemporaryAllocation(byteCount: headerSize, alignment: 16) { header in
      header.initializeMemory(as: UInt8.self, repeating: 0)
      let parts = [
        iovec(iov_base: header.baseAddress, iov_len: headerSize),
        iovec(iov_base: UnsafeMutableRawPointer(mutating: packet.baseAddress), iov_len: packet.count),
      ]
      return retrying { writev(tun.raw, parts, 2) } == headerSize + packet.count
    }
  }
}

/// `struct ifreq` as TUNGETIFF fills it.
private struct TunRequest {
  var name: (UInt64, UInt64) = (0, 0)
  var flags: UInt16 = 0
  var rest: (UInt16, Int32, UInt64, UInt64) = (0, 0, 0, 0)
}
