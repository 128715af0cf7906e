internal import CKapeDataPlane
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
  private let handles: Handles

  /// Two sockets of one namespace: changes, and questions. Only ever used by the one task that waits in `next`.
  private struct Handles: ~Copyable, @unchecked Sendable {
    let changes: OpaquePointer
    let questions: Netlink
    deinit { kdp_netlink_close(changes) }
  }

  package init(index: UInt32) throws(NetlinkError) {
    self.index = index
    let questions = try Netlink()
    var changes: OpaquePointer?
    let status = kdp_netlink_open(KDP_NETLINK_LINK_CHANGES.rawValue, &changes)
    guard status == KDP_OK, let changes else { throw NetlinkError("watch interface \(index)", code: errno) }
    handles = Handles(changes: changes, questions: questions)
  }

  /// The state as it is now.
  package func present() throws(NetlinkError) -> LinkChange {
    guard let link = try handles.questions.link(at: index) else { return .gone }
    return .state(LinkState(isUp: link.isUp, mtu: Int(link.mtu)))
  }

  /// Waits for changes of the interface since the monitor was made, in order.
  package func next(_ reactor: Reactor) async throws -> [LinkChange] {
    while true {
      try await reactor.readable(kdp_netlink_fd(handles.changes))
      let index = self.index
      let records = Records {
        $0.kind == KDP_NETLINK_LINK && $0.link.index == index && ($0.gone || $0.link.mtu != 0)
      }
      let status = kdp_netlink_read_changes(handles.changes, keepRecord, Unmanaged.passUnretained(records).toOpaque())
      // Some were lost.
      if status == KDP_LIMIT { return [try present()] }
      guard status == KDP_OK else { throw NetlinkError("watch interface \(index)", code: errno) }
      let changes = records.kept.map { record in
        record.gone ? LinkChange.gone : .state(LinkState(isUp: record.link.up, mtu: Int(record.link.mtu)))
      }
      if !changes.isEmpty { return changes }
    }
  }
}
