internal import CKapeDataPlane
package import KapeProtocols

/// The nftables rules of a full tunnel: nobody else injects into its addresses, and answers to its own packets pass
/// reverse path checks. One table a family, named after the interface.
package enum PacketGuard {
  package enum Failure: Error, CustomStringConvertible {
    /// The kernel has no nftables, or not the expressions needed.
    case unavailable(NetlinkError)
    case refused(NetlinkError)

    package var description: String {
      switch self {
      case .unavailable(let error): "this kernel cannot do it: \(error)"
      case .refused(let error): "\(error)"
      }
    }
  }

  package static func tableName(_ interface: String) -> String { "kape-" + interface }

  package static func add(
    interface: String, family: IPAddress.Family, mark: UInt32, addresses: [IPAddress]
  ) throws(Failure) {
    let name = tableName(interface)
    let prefixes = addresses.map { kdp_prefix($0, length: $0.family.bitCount) }
    var error = kdp_netlink_error()
    let status = name.withCString { table in
      interface.withCString { interface in
        prefixes.withUnsafeBufferPointer { addresses in
          var none = kdp_prefix()
          return withUnsafePointer(to: &none) { none in
            var rules = kdp_netfilter_guard()
            rules.table = table
            rules.interface = interface
            rules.family = family.rawValue
            rules.mark = mark
            rules.address = addresses.baseAddress ?? none
            rules.address_count = UInt32(addresses.count)
            return kdp_netfilter_add_guard(&rules, &error)
          }
        }
      }
    }
    if status == KDP_OK { return }
    let reason = NetlinkError("add nftables table \(name)", status, error)
    throw status == KDP_UNSUPPORTED ? .unavailable(reason) : .refused(reason)
  }

  /// A table that is not there is as good as deleted.
  package static func remove(table: String, family: IPAddress.Family) throws(NetlinkError) {
    var error = kdp_netlink_error()
    let status = kdp_netfilter_delete_table(table, family.forC, &error)
    guard status == KDP_OK || status == KDP_NOT_FOUND || status == KDP_UNSUPPORTED else {
      throw NetlinkError("delete nftables table \(table)", status, error)
    }
  }
}
