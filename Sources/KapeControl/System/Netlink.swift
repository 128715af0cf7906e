internal import CKapeDataPlane
import Glibc
package import KapeProtocols

/// Requests to the kernel's routing (rtnetlink), in the network namespace of the thread that made it. Each takes
/// microseconds; none waits for anything but the kernel.
package struct Netlink: ~Copyable {
  /// RTN_UNICAST and RTN_LOCAL.
  private static let unicast: UInt8 = 1
  private static let local: UInt8 = 2

  private let handle: OpaquePointer

  package init() throws(NetlinkError) {
    var made: OpaquePointer?
    let status = kdp_netlink_open(0, &made)
    guard status == KDP_OK, let made else { throw NetlinkError("open netlink", code: errno) }
    handle = made
  }

  deinit { kdp_netlink_close(handle) }

  // MARK: Links

  /// nil: there is no such interface.
  package func link(named name: String) throws(NetlinkError) -> NetworkLink? {
    var link = kdp_netlink_link()
    var error = kdp_netlink_error()
    let status = kdp_netlink_find_link(handle, name, &link, &error)
    if status == KDP_SYSTEM && error.code == ENODEV { return nil }
    guard status == KDP_OK else { throw NetlinkError("look up interface \(name)", status, error) }
    return NetworkLink(link)
  }

  package func link(at index: UInt32) throws(NetlinkError) -> NetworkLink? {
    var link = kdp_netlink_link()
    var error = kdp_netlink_error()
    let status = kdp_netlink_link_at(handle, index, &link, &error)
    if status == KDP_SYSTEM && error.code == ENODEV { return nil }
    guard status == KDP_OK else { throw NetlinkError("look up interface \(index)", status, error) }
    return NetworkLink(link)
  }

  /// `mtu` 0 leaves it.
  package func setLink(_ index: UInt32, up: Bool, mtu: UInt32 = 0) throws(NetlinkError) {
    try request("set interface \(up ? "up" : "down")\(mtu == 0 ? "" : ", MTU \(mtu)")") {
      kdp_netlink_set_link(handle, index, up, mtu, &$0)
    }
  }

  package func deleteLink(_ index: UInt32) throws(NetlinkError) {
    try request("delete interface \(index)") { kdp_netlink_delete_link(handle, index, &$0) }
  }

  // MARK: Addresses

  package func addAddress(_ address: InterfaceAddress, to index: UInt32) throws(NetlinkError) {
    var wanted = kdp_netlink_address(address, index)
    try request("add address \(address)") { kdp_netlink_add_address(handle, &wanted, &$0) }
  }

  package func deleteAddress(_ address: InterfaceAddress, from index: UInt32) throws(NetlinkError) {
    var wanted = kdp_netlink_address(address, index)
    try request("delete address \(address)") { kdp_netlink_delete_address(handle, &wanted, &$0) }
  }

  package func addresses(of index: UInt32) throws(NetlinkError) -> [InterfaceAddress] {
    try list("list addresses", where: Self.any) { visit, context, error in
      kdp_netlink_list_addresses(handle, KDP_FAMILY_NONE, index, visit, context, &error)
    }.compactMap { InterfaceAddress($0.address.prefix) }
  }

  // MARK: Routes

  package func addRoute(_ route: Route) throws(NetlinkError) {
    var wanted = kdp_netlink_route(route)
    try request("add route \(route.destination) to table \(route.table)") {
      kdp_netlink_add_route(handle, &wanted, &$0)
    }
  }

  package func deleteRoute(_ route: Route) throws(NetlinkError) {
    var wanted = kdp_netlink_route(route)
    try request("delete route \(route.destination) from table \(route.table)") {
      kdp_netlink_delete_route(handle, &wanted, &$0)
    }
  }

  /// The route that a packet takes; nil: there is none.
  package func route(to address: IPAddress, scope: UInt32 = 0, mark: UInt32 = 0) throws(NetlinkError) -> Route? {
    var destination = kdp_address(address, port: 0, scope: scope)
    var route = kdp_netlink_route()
    var error = kdp_netlink_error()
    let status = kdp_netlink_route_to(handle, &destination, mark, &route, &error)
    if status == KDP_SYSTEM && [ENETUNREACH, EHOSTUNREACH, EACCES, EINVAL, ENODEV].contains(error.code) { return nil }
    guard status == KDP_OK else { throw NetlinkError("look up route to \(address)", status, error) }
    // Unreachable and its kin come as answers too.
    guard route.type == Self.unicast || route.type == Self.local else { return nil }
    return Route(route)
  }

  /// Unicast routes of a table (0: all) by an interface (0: any) that `condition` wants.
  package func routes(
    _ family: IPAddress.Family, table: UInt32 = Route.mainTable, interface: UInt32 = 0,
    where condition: @escaping (Route) -> Bool = { _ in true }
  ) throws(NetlinkError) -> [Route] {
    let isWanted = { (record: kdp_netlink_record) in
      record.route.type == Self.unicast && Route(record.route).map(condition) ?? false
    }
    return try list("list routes", where: isWanted) { visit, context, error in
      kdp_netlink_list_routes(handle, family.forC, table, interface, visit, context, &error)
    }.compactMap { Route($0.route) }
  }

  /// Whether a table has any entry at all.
  package func hasRoutes(_ family: IPAddress.Family, table: UInt32) throws(NetlinkError) -> Bool {
    try !list("list routes", where: Self.any) { visit, context, error in
      kdp_netlink_list_routes(handle, family.forC, table, 0, visit, context, &error)
    }.isEmpty
  }

  // MARK: Rules

  package func addRule(_ rule: PolicyRule) throws(NetlinkError) {
    var wanted = kdp_netlink_rule(rule)
    try request("add rule for table \(rule.table)") { kdp_netlink_add_rule(handle, &wanted, &$0) }
  }

  package func deleteRule(_ rule: PolicyRule) throws(NetlinkError) {
    var wanted = kdp_netlink_rule(rule)
    try request("delete rule for table \(rule.table)") { kdp_netlink_delete_rule(handle, &wanted, &$0) }
  }

  /// In the order of their priorities.
  package func rules(_ family: IPAddress.Family) throws(NetlinkError) -> [PolicyRule] {
    try list("list rules", where: Self.any) { visit, context, error in
      kdp_netlink_list_rules(handle, family.forC, visit, context, &error)
    }.map { PolicyRule($0.rule, family) }
  }

  // MARK: -

  private static func any(_: kdp_netlink_record) -> Bool { true }

  private func request(
    _ operation: @autoclosure () -> String, _ body: (inout kdp_netlink_error) -> kdp_status
  ) throws(NetlinkError) {
    var error = kdp_netlink_error()
    let status = body(&error)
    guard status == KDP_OK else { throw NetlinkError(operation(), status, error) }
  }

  private func list(
    _ operation: String, where condition: @escaping (kdp_netlink_record) -> Bool,
    _ body: (kdp_netlink_visit, UnsafeMutableRawPointer, inout kdp_netlink_error) -> kdp_status
  ) throws(NetlinkError) -> [kdp_netlink_record] {
    var error = kdp_netlink_error()
    var status = KDP_AGAIN
    var attempts = 0
    while status == KDP_AGAIN && attempts < 8 {
      let records = Records(condition)
      status = body(keepRecord, Unmanaged.passUnretained(records).toOpaque(), &error)
      // A list that changes all the time is as good as it gets.
      if status == KDP_OK || (status == KDP_AGAIN && attempts == 7) { return records.kept }
      attempts += 1
    }
    throw NetlinkError(operation, status, error)
  }
}

final class Records {
  var kept: [kdp_netlink_record] = []
  private let condition: (kdp_netlink_record) -> Bool

  init(_ condition: @escaping (kdp_netlink_record) -> Bool) { self.condition = condition }

  func see(_ record: kdp_netlink_record) {
    if condition(record) { kept.append(record) }
  }
}

func keepRecord(_ context: UnsafeMutableRawPointer?, _ record: UnsafePointer<kdp_netlink_record>?) -> Bool {
  guard let context, let record else { return false }
  Unmanaged<Records>.fromOpaque(context).takeUnretainedValue().see(record.pointee)
  return true
}
