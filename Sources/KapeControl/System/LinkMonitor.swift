internal import CLinux
import Glibc

/// What `ip link set` can change of an interface while it runs.
package struct LinkState: Equatable, Sendable {
  package var isUp: Bool
  package var mtu: Int
}

package enum LinkChange: Equatable, Sendable {
  case state(LinkState)
  /// Deleted, or moved to another network namespace.
  case gone
}

/// Follows one interface over rtnetlink, in the network namespace that the calling thread is in when it is made.
package final class LinkMonitor: Sendable {
  package let index: UInt32
  private let socket: Descriptor

  /// The first change that `next` gives is the present state.
  package init(index: UInt32) throws(SystemError) {
    self.index = index
    let descriptor = Glibc.socket(
      AF_NETLINK, Int32(SOCK_RAW.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), NETLINK_ROUTE)
    guard descriptor >= 0 else { throw SystemError("socket(NETLINK_ROUTE)") }
    socket = Descriptor(owning: descriptor)
    var address = sockaddr_nl()
    address.nl_family = sa_family_t(AF_NETLINK)
    address.nl_groups = UInt32(RTMGRP_LINK)
    let bound = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_nl>.size))
      }
    }
    guard bound == 0 else { throw SystemError("bind(NETLINK_ROUTE)") }
    try ask()
  }

  /// Waits for changes of the interface: what one datagram of the kernel tells.
  package func next(_ reactor: Reactor) async throws -> [LinkChange] {
    while true {
      try await reactor.readable(socket.raw)
      let changes = try receive().get()
      if !changes.isEmpty { return changes }
    }
  }

  private func ask() throws(SystemError) {
    var request = LinkRequest()
    request.header.nlmsg_len = UInt32(MemoryLayout<LinkRequest>.size)
    request.header.nlmsg_type = UInt16(RTM_GETLINK)
    request.header.nlmsg_flags = UInt16(NLM_F_REQUEST)
    request.link.ifi_index = Int32(bitPattern: index)
    guard retrying({ send(socket.raw, &request, MemoryLayout<LinkRequest>.size, 0) }) != nil else {
      throw SystemError("send(RTM_GETLINK)")
    }
  }

  private func receive() -> Result<[LinkChange], SystemError> {
    // The kernel cuts its datagrams to 32 KiB at most; one about a link is about 1.5 KiB.
    let capacity = 32 * 1024
    var failure: SystemError?
    var changes: [LinkChange] = []
    withUnsafeTemporaryAllocation(byteCount: capacity, alignment: 8) { buffer in
      guard let size = retrying({ recv(socket.raw, buffer.baseAddress, capacity, 0) }) else {
        switch errno {
        case EAGAIN: return
        case ENOBUFS:
          // Some were lost: ask for the state as it is now.
          do { try ask() } catch let error as SystemError { failure = error } catch {}
        default: failure = SystemError("recv(NETLINK_ROUTE)")
        }
        return
      }
      changes = linkChanges(in: UnsafeRawBufferPointer(rebasing: buffer[..<size]), index: index)
    }
    if let failure { return .failure(failure) }
    return .success(changes)
  }
}

private struct LinkRequest {
  var header = nlmsghdr()
  var link = ifinfomsg()
}

/// Reads what a netlink datagram says of one interface. Lengths are checked before use.
func linkChanges(in datagram: UnsafeRawBufferPointer, index: UInt32) -> [LinkChange] {
  let headerSize = MemoryLayout<nlmsghdr>.size
  let linkSize = MemoryLayout<ifinfomsg>.size
  var changes: [LinkChange] = []
  var offset = 0
  while datagram.count - offset >= headerSize {
    let header = datagram.loadUnaligned(fromByteOffset: offset, as: nlmsghdr.self)
    let size = Int(header.nlmsg_len)
    guard size >= headerSize, size <= datagram.count - offset else { break }
    let message = UnsafeRawBufferPointer(rebasing: datagram[offset + headerSize..<offset + size])
    offset += (size + 3) & ~3
    if Int32(header.nlmsg_type) == NLMSG_ERROR, message.count >= 4 {
      // The answer to our question: there is no such interface.
      if message.loadUnaligned(as: Int32.self) == -ENODEV { changes.append(.gone) }
      continue
    }
    guard message.count >= linkSize else { continue }
    let link = message.loadUnaligned(as: ifinfomsg.self)
    guard UInt32(bitPattern: link.ifi_index) == index else { continue }
    if Int32(header.nlmsg_type) == Int32(RTM_DELLINK) {
      // A bridge tells of a port that leaves it in the same words, with its family.
      if link.ifi_family == 0 { changes.append(.gone) }
    } else if Int32(header.nlmsg_type) == Int32(RTM_NEWLINK), link.ifi_family == 0 {
      let attributes = UnsafeRawBufferPointer(rebasing: message[linkSize...])
      if let mtu = attribute(UInt16(IFLA_MTU), in: attributes) {
        changes.append(.state(LinkState(isUp: link.ifi_flags & UInt32(IFF_UP) != 0, mtu: Int(mtu))))
      }
    }
  }
  return changes
}

/// The first 32-bit attribute of that type.
private func attribute(_ type: UInt16, in attributes: UnsafeRawBufferPointer) -> UInt32? {
  let headerSize = 4
  var offset = 0
  while attributes.count - offset >= headerSize {
    let size = Int(attributes.loadUnaligned(fromByteOffset: offset, as: UInt16.self))
    guard size >= headerSize, size <= attributes.count - offset else { return nil }
    if attributes.loadUnaligned(fromByteOffset: offset + 2, as: UInt16.self) == type, size >= headerSize + 4 {
      return attributes.loadUnaligned(fromByteOffset: offset + headerSize, as: UInt32.self)
    }
    offset += (size + 3) & ~3
  }
  return nil
}
