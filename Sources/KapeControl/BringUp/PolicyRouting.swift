import Glibc
internal import KapeProtocols

/// What makes a tunnel a full one: the policy rules that lead everything without its mark into its table, and what keeps
/// strangers and reverse path checks out of the way. Each is written down in the journal before it is done.
struct PolicyRouting {
  private static let triesForAPlace = 100

  let interface: String
  let journal: Journal

  /// Before all rules that are there. Another tunnel's equal rule may come to the same place between the look and the
  /// request (EEXIST): then the place before that one is free. Returns it with its place.
  func addRule(_ wanted: PolicyRule, _ netlink: borrowing Netlink) throws -> PolicyRule {
    var rule = wanted
    var tries = 0
    while true {
      rule.priority = PolicyRule.nextPriority(before: try netlink.rules(rule.family))
      try journal.append(.rule(rule))
      do throws(NetlinkError) {
        try netlink.addRule(rule)
        return rule
      } catch {
        tries += 1
        guard error.code == EEXIST, tries < Self.triesForAPlace else { throw error }
        try journal.append(.ruleRefused(rule))
      }
    }
  }

  /// So that reverse path checks take the mark into account. Returns a warning when it cannot be done.
  func markValidSources() throws -> String? {
    let path = KernelParameter.sourceValidMark
    do throws(SystemError) {
      let before = try KernelParameter.read(path)
      try journal.append(.parameter(path: path, before: before))
      if before != "1" { try KernelParameter.write("1", to: path) }
      return nil
    } catch {
      return "\(error): with a strict reverse path filter answers to the tunnel's packets may be dropped"
    }
  }

  var guardTable: String { PacketGuard.tableName(interface) }

  /// Returns a warning when the kernel has no nftables.
  func addGuard(_ family: IPAddress.Family, mark: UInt32, _ addresses: [IPAddress]) throws -> String? {
    try journal.append(.guardTable(name: guardTable, family: family))
    do throws(PacketGuard.Failure) {
      // One of that name can only be left over from a tunnel whose journal is lost, or be this tunnel's with other
      // addresses.
      try? PacketGuard.remove(table: guardTable, family: family)
      try PacketGuard.add(interface: interface, family: family, mark: mark, addresses: addresses)
      return nil
    } catch {
      guard case .unavailable = error else { throw error }
      return "no nftables rules protect the tunnel's addresses from packets of others: \(error)"
    }
  }
}
