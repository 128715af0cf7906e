import Glibc
internal import KapeProtocols

/// The network side of one tunnel that a provider serves: its TUN, and what the provider's settings made of the system.
/// Settings replace each other in place: what stays the same is not touched, and what is new comes before what is old
/// goes, so that nothing leaves outside the tunnel in between.
actor TunnelNetwork {
  /// What is there now, whatever was wanted.
  struct State {
    var plan = NetworkPlan()
    var rules: [PolicyRule] = []
    /// The addresses that strangers are kept away from.
    var guarded: [IPAddress.Family: [IPAddress]] = [:]
    /// The plan by which name servers were set; nil: they were not, or were half way only.
    var names: NetworkPlan?
    var nameMethod: NameServices.Method?
    var areNamesTouched = false
  }

  nonisolated let tun: TunInterface
  nonisolated let index: UInt32
  nonisolated let name: String
  /// The number of the tunnel's routing table and the mark of its sockets.
  nonisolated let mark: UInt32
  nonisolated let folder: String
  var journal: Journal
  var state = State()
  private(set) var settings: TunnelSettings?
  var warnings: [String] = []
  private let turn = AsyncLock()

  /// Makes the interface; nobody else has its descriptor yet, so that it goes with this process until it is written down.
  init(_ directory: RunDirectory, _ journal: Journal, mark: UInt32) throws {
    name = directory.name
    folder = directory.path
    self.mark = mark
    do throws(TunInterface.Failure) {
      tun = try TunInterface.open(name: directory.name, fallbacks: 0)
    } catch {
      switch error {
      case .busy: throw IPCFailure(.busy, "the interface \(directory.name) is another program's")
      case .system(let error): throw IPCFailure(.failed, "\(error)")
      }
    }
    guard let index = tun.currentIndex() else { throw SystemError("if_nametoindex", code: ENODEV) }
    self.index = index
    try journal.append(.link(name: directory.name, index: index))
    self.journal = journal
  }

  /// All of it, or what was there before. Throws `IPCFailure`.
  func apply(_ wanted: TunnelSettings) async throws {
    try await turn.withLock { try await replace(wanted) }
  }

  private func replace(_ wanted: TunnelSettings) async throws {
    let before = state.plan
    do {
      let netlink = try Netlink()
      try SettingsCheck.check(wanted, interface: name, taken: try addressesOfOthers(netlink))
      guard let next = NetworkPlan(wanted, others: try routesOfOthers(netlink)) else {
        throw IPCFailure(.invalid, "too many routes are left when the excluded ones are taken out")
      }
      warnings = []
      do {
        try await bring(next, netlink)
        try await remove(before, netlink)
      } catch {
        try? await bring(before, netlink)
        try? await remove(next, netlink)
        throw error
      }
      settings = wanted
      try compactJournal()
    } catch let failure as IPCFailure {
      throw failure
    } catch {
      throw IPCFailure(.failed, "\(error)")
    }
  }

  /// As before the first settings: no addresses, routes, rules or name servers, and the link down.
  func clear() async throws {
    try await turn.withLock {
      try await putBack { record in
        switch record {
        case .began, .link, .process, .socket, .up, .ending: false
        default: true
        }
      }
      let addresses = state.plan.addresses
      state = State()
      settings = nil
      let netlink = try Netlink()
      try netlink.setLink(index, up: false)
      // Those of IPv6 went with the link.
      for address in addresses { try? netlink.deleteAddress(address, from: index) }
    }
  }

  /// Writes something down that others do for the tunnel.
  func note(_ record: JournalRecord) throws { try journal.append(record) }

  /// Undoes what the chosen records tell of, and forgets them.
  func putBack(_ isChosen: (JournalRecord) -> Bool) async throws {
    var summary = JournalSummary(try Journal.read(journal.path) ?? [])
    summary.undo = summary.undo.filter(isChosen)
    let putBack = try PutBack(name, summary)
    await putBack.run()
    warnings += await putBack.remarks
    let problems = await putBack.problems
    guard problems.isEmpty else { throw IPCFailure(.failed, problems.joined(separator: "; ")) }
    journal = try journal.compacted { !isChosen($0) }
  }

  /// Of rules that came and went there may be records left.
  private func compactJournal() throws {
    let present = state.rules
    journal = try journal.compacted { record in
      switch record {
      case .rule(let rule): present.contains(rule)
      case .ruleRefused: false
      default: true
      }
    }
  }

  /// What is there, for the status.
  func applied() -> AppliedSettings {
    let plan = state.plan
    var applied = AppliedSettings()
    applied.addresses = plan.addresses
    applied.mtu = plan.mtu
    applied.routes =
      plan.tableRoutes.map { Route($0, table: mark, interface: index) }
      + plan.mainRoutes.map { Route($0, interface: index) }
    applied.rules = state.rules
    applied.fullTunnels = plan.families.filter { family in
      plan.tableRoutes.contains { $0.isDefault && $0.address.family == family }
    }
    applied.table = plan.families.isEmpty ? nil : mark
    applied.guardTables = state.guarded.keys.map { ($0 == .ipv4 ? "ip " : "ip6 ") + PacketGuard.tableName(name) }
      .sorted()
    applied.nameServiceMethod = state.nameMethod?.rawValue
    applied.nameServers = plan.nameServers
    applied.searchDomains = plan.searchDomains
    return applied
  }
}
