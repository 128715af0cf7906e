internal import CKapeDataPlane
import Glibc

/// Word of every change of links, addresses and routes in the network namespace of the thread that made it.
package final class NetworkMonitor: Sendable {
  private let handle: Handle

  /// Only ever used by the one task that waits in `next`.
  private struct Handle: ~Copyable, @unchecked Sendable {
    let pointer: OpaquePointer
    deinit { kdp_netlink_close(pointer) }
  }

  package init() throws(NetlinkError) {
    var made: OpaquePointer?
    let changes =
      KDP_NETLINK_LINK_CHANGES.rawValue | KDP_NETLINK_ADDRESS_CHANGES.rawValue
      | KDP_NETLINK_ROUTE_CHANGES.rawValue
    let status = kdp_netlink_open(changes, &made)
    guard status == KDP_OK, let made else { throw NetlinkError("watch the network", code: errno) }
    handle = Handle(pointer: made)
  }

  /// Waits for changes and returns those that are there. Empty: some were lost; look at everything.
  package func next(_ reactor: Reactor) async throws -> [NetworkChange] {
    while true {
      try await reactor.readable(kdp_netlink_fd(handle.pointer))
      let records = Records { [KDP_NETLINK_LINK, KDP_NETLINK_ADDRESS, KDP_NETLINK_ROUTE].contains($0.kind) }
      let status = kdp_netlink_read_changes(handle.pointer, keepRecord, Unmanaged.passUnretained(records).toOpaque())
      if status == KDP_LIMIT { return [] }
      guard status == KDP_OK else { throw NetlinkError("watch the network", code: errno) }
      if !records.kept.isEmpty { return records.kept.map(NetworkChange.init) }
    }
  }
}

extension NetworkChange {
  fileprivate init(_ record: kdp_netlink_record) {
    switch record.kind {
    case KDP_NETLINK_LINK: self.init(kind: .link, interface: record.link.index)
    case KDP_NETLINK_ADDRESS: self.init(kind: .address, interface: record.address.index)
    default: self.init(kind: .route, interface: record.route.index)
    }
  }
}
