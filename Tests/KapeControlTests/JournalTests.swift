import Glibc
import KapeProtocols
import Testing

@testable import KapeControl

@Suite struct JournalTests {
  static let rule: PolicyRule = {
    var rule = PolicyRule(family: .ipv6, table: 51820)
    rule.priority = 32765
    rule.mark = 51820
    rule.isInverted = true
    return rule
  }()
  static let suppressing: PolicyRule = {
    var rule = PolicyRule(family: .ipv4, table: 254)
    rule.priority = 32764
    rule.suppressPrefixLength = 0
    return rule
  }()

  static let records: [JournalRecord] = [
    .began(.init(boot: "b", namespace: "net:[4026531840]", process: 12, configuration: "/etc/wireguard/a b%.conf")),
    .parameter(path: "net/ipv4/conf/all/src_valid_mark", before: "0"),
    .rule(rule), .rule(suppressing), .ruleRefused(suppressing), .guardTable(name: "kape-wg0", family: .ipv6),
    .resolvconf(entry: "tun.wg0"),
    .resolved(interface: "wg0"), .resolverFile(ResolverFileBackup(path: "/etc/resolv.conf", way: .beside("/etc/.x"))),
    .resolverFile(ResolverFileBackup(path: "/etc/resolv.conf", way: .link("../run/stub resolv.conf"))),
    .resolverFile(ResolverFileBackup(path: "/etc/resolv.conf", way: .absent)),
    .resolverFile(ResolverFileBackup(path: "/etc/resolv.conf", way: .copied("/run/kape/wg0/c"))), .resolverFileWritten,
    .resolverFileReturning, .resolverFileWritten, .socket(path: "/var/run/wireguard/wg0.sock"),
    .downCommand(.init(.before, "iptables -D X; echo 'ü\t%41'")),
    .downCommand(.init(.after, "")), .link(name: "kape0", index: 7), .process(4711, started: 1_234_567), .up, .ending,
  ]

  @Test(arguments: records) func aRecordIsReadAsItWasWritten(_ record: JournalRecord) {
    #expect(JournalRecord(line: record.line) == record)
    #expect(!record.line.contains("\n"))
  }

  @Test(arguments: [
    "", "x", "rule 4 1", "rule 9 1 1 - - -", "guard a 5", "began a b c d", "parameter %4 x", "parameter a",
    "resolver-file a b c", "link kape0", "link kape0 x", "process 1 7", "process -4711 7", "process 4711",
  ])
  func aStrangeLineIsNoRecord(_ line: String) {
    #expect(JournalRecord(line: line) == nil)
  }

  @Test func aLineWithoutEndWasNeverActedUpon() {
    let text = Journal.heading + "\n" + Self.records[2].line + "\n" + Self.records[3].line
    #expect(Journal.records(text) == [Self.records[2]])
    #expect(Journal.records("something else\n" + Self.records[2].line + "\n") == [])
    #expect(Journal.records("") == [])
  }

  @Test func undoingGoesBackwards() {
    let summary = JournalSummary(Self.records)
    #expect(summary.undo.prefix(2) == [.process(4711, started: 1_234_567), .link(name: "kape0", index: 7)])
    #expect(summary.undo.dropFirst(2).first == .socket(path: "/var/run/wireguard/wg0.sock"))
    #expect(summary.undo.last == .parameter(path: "net/ipv4/conf/all/src_valid_mark", before: "0"))
    #expect(summary.before == ["iptables -D X; echo 'ü\t%41'"])
    #expect(summary.after == [""])
    #expect(summary.wasUp && summary.wasEnding && summary.resolverFileIsWhole)
  }

  @Test func aFileThatIsBeingBroughtBackIsNotOurs() {
    #expect(!JournalSummary([.resolverFileWritten, .resolverFileReturning]).resolverFileIsWhole)
  }

  @Test func aRuleThatWasRefusedIsNotTakenAway() {
    #expect(
      JournalSummary([.rule(Self.rule), .rule(Self.suppressing), .ruleRefused(Self.suppressing)]).undo == [
        .rule(Self.rule)
      ])
    let again = JournalSummary([.rule(Self.rule), .ruleRefused(Self.rule), .rule(Self.rule)])
    #expect(again.undo == [.rule(Self.rule)])
  }

  @Test func theLastValueOfAParameterCounts() {
    let summary = JournalSummary([
      .parameter(path: "a", before: "1"), .rule(Self.rule), .parameter(path: "a", before: "0"),
    ])
    #expect(summary.undo == [.rule(Self.rule), .parameter(path: "a", before: "0")])
    #expect(summary.before("a") == "0")
    #expect(summary.before("b") == nil)
  }

  @Test func aJournalIsContinuedWhereItStopped() throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/journal"
    do {
      let journal = try Journal(path)
      try journal.append(Self.records[1])
    }
    let journal = try Journal(path)
    try journal.append(Self.records[2])
    try Journal.append(Self.records[3], to: path)
    #expect(try Journal.read(path) == Array(Self.records[1...3]))
    #expect(try Journal.read(path + "-absent") == nil)
  }

  @Test func aCompactedJournalHoldsWhatIsLeftAndGoesOn() throws {
    let folder = try TemporaryFolder()
    var journal = try Journal(folder.path + "/journal")
    for record in [.link(name: "a", index: 1), .rule(Self.rule), .up, .rule(Self.suppressing), .rule(Self.rule)]
      as [JournalRecord]
    {
      try journal.append(record)
    }
    journal = try journal.compacted { $0 != .rule(Self.suppressing) }
    try journal.append(.ending)
    #expect(try Journal.read(journal.path) == [.link(name: "a", index: 1), .up, .rule(Self.rule), .ending])
    #expect(Files.names(in: folder.path) == ["journal"])
  }
}
