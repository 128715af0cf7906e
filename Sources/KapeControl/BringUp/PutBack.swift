internal import CLinux
import Glibc
internal import KapeProtocols

/// Brings the system back to what it was before a tunnel, from the tunnel's journal: at its end, when its start failed
/// half way, and for one that was killed. Each step is tried whatever became of the others, and doing it twice does no
/// harm.
package actor PutBack {
  private let name: String
  private let summary: JournalSummary
  private let netlink: Netlink
  /// What could not be put back, in words.
  package private(set) var problems: [String] = []
  /// What was left as it is, on purpose.
  package private(set) var remarks: [String] = []

  package init(_ name: String, _ summary: JournalSummary) throws(NetlinkError) {
    self.name = name
    self.summary = summary
    netlink = try Netlink()
  }

  package func run() async {
    for record in summary.undo {
      do {
        try await undo(record)
      } catch {
        problems.append("\(error)")
      }
    }
  }

  private func undo(_ record: JournalRecord) async throws {
    switch record {
    case .parameter(let path, let before): try restoreParameter(path, before)
    case .rule(let rule): try removeRule(rule)
    case .guardTable(let table, let family): try PacketGuard.remove(table: table, family: family)
    case .resolvconf(let entry): try await NameServices.removeEntry(entry)
    case .resolved(let interface): try await NameServices.revertResolved(interface)
    case .resolverFile(let backup): try restoreResolverFile(backup)
    case .socket(let path): Self.removeStaleSocket(path)
    case .link(let name, let index): try removeLink(name, index)
    case .process(let process, let started): try await StartedProcess(process, started: started).end()
    case .began, .ruleRefused, .resolverFileWritten, .resolverFileReturning, .downCommand, .up, .ending: break
    }
  }

  private func removeLink(_ name: String, _ index: UInt32) throws {
    guard let link = try netlink.link(at: index), link.name == name, link.kind == "tun" else { return }
    do {
      try netlink.deleteLink(index)
    } catch {
      guard error.code == ENODEV else { throw error }
    }
  }

  private func removeRule(_ rule: PolicyRule) throws {
    do {
      try netlink.deleteRule(rule)
    } catch {
      // Gone already, or never made.
      guard [ENOENT, ESRCH, EAFNOSUPPORT].contains(error.code) else { throw error }
    }
  }

  // MARK: What tunnels share

  private func siblings() -> [(name: String, summary: JournalSummary)] {
    RunDirectory.names().compactMap { other in
      guard other != name, let records = try? Journal.read(RunDirectory.journal(of: other)) else { return nil }
      return (other, JournalSummary(records))
    }
  }

  /// While another tunnel of this namespace needs the value, it inherits what was there before.
  private func restoreParameter(_ path: String, _ before: String) throws {
    for sibling in siblings()
    where sibling.summary.before(path) != nil && sibling.summary.origin?.namespace == summary.origin?.namespace {
      // With the value of a time when this tunnel had set it already, the other has what was there first.
      if try before != KernelParameter.read(path) {
        try Journal.append(.parameter(path: path, before: before), to: RunDirectory.journal(of: sibling.name))
      }
      return
    }
    if try KernelParameter.read(path) != before { try KernelParameter.write(before, to: path) }
  }

  /// Only a file that is still ours is replaced. When another tunnel came later and keeps ours as what was there before
  /// it, it gets what was there before us.
  private func restoreResolverFile(_ backup: ResolverFileBackup) throws {
    let ours = try Files.read(NameServices.ours(in: RunDirectory.path(of: name)))
    guard summary.resolverFileIsWhole, let ours, try Files.read(backup.path) != ours else {
      if case .copied = backup.way { try Journal.append(.resolverFileReturning, to: RunDirectory.journal(of: name)) }
      try backup.restore()
      return
    }
    for sibling in siblings() {
      guard let other = sibling.summary.resolverFile, other.path == backup.path, try other.original() == ours else {
        continue
      }
      try Self.handOver(backup, to: other, RunDirectory.journal(of: sibling.name))
      return
    }
    if try Files.read(backup.path) != backup.original() {
      remarks.append("\(backup.path) was changed by someone else meanwhile and is left as it is")
    }
    try backup.forget()
  }

  private static func handOver(
    _ backup: ResolverFileBackup, to other: ResolverFileBackup, _ journal: String
  ) throws {
    if let mine = backup.way.kept, let theirs = other.way.kept {
      guard rename(mine, theirs) == 0 else { throw SystemError(theirs) }
    } else {
      try Journal.append(.resolverFile(backup), to: journal)
      try other.forget()
    }
  }

  private static func removeStaleSocket(_ path: String) {
    if !UnixSocket.isAnswered(path) { unlink(path) }
  }
}

extension PutBack {
  /// Whether what a journal tells of is this machine's present and this network namespace's.
  package enum Standing: Equatable, Sendable {
    case here
    /// The machine was started anew since: only what is on disk is there still.
    case beforeRestart
    /// It belongs to another network namespace.
    case elsewhere(String)
  }

  package static func standing(of origin: JournalRecord.Origin?) -> Standing {
    guard let origin else { return .here }
    let now = currentOrigin(configuration: "")
    if origin.boot != now.boot { return .beforeRestart }
    return origin.namespace == now.namespace ? .here : .elsewhere(origin.namespace)
  }

  package static func currentOrigin(configuration: String) -> JournalRecord.Origin {
    let boot = (try? Files.text("/proc/sys/kernel/random/boot_id")) ?? ""
    return JournalRecord.Origin(
      boot: boot.split(separator: "\n").first.map(String.init) ?? "", namespace: Files.link("/proc/self/ns/net") ?? "",
      process: getpid(), configuration: configuration)
  }
}
