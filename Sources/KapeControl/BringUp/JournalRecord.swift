package import KapeProtocols

/// One thing that a tunnel changed of the system, written down before it was, with what is needed to put it back.
/// Addresses and routes are not among them: the kernel takes them away with the link, and the link with the process that
/// has the TUN.
package enum JournalRecord: Equatable, Sendable {
  /// Where it all happened: nothing is put back after a restart of the machine, or from another network namespace.
  case began(Origin)
  /// A kernel parameter (sysctl) and its value before. Of several records of one path the last counts.
  case parameter(path: String, before: String)
  case rule(PolicyRule)
  /// The rule told of before was refused, because another's equal one was there: it is not this tunnel's to take away.
  case ruleRefused(PolicyRule)
  case guardTable(name: String, family: IPAddress.Family)
  /// An entry of resolvconf(8), by its name there.
  case resolvconf(entry: String)
  /// Settings of systemd-resolved for the interface.
  case resolved(interface: String)
  case resolverFile(ResolverFileBackup)
  /// The new resolv.conf is there as a whole.
  case resolverFileWritten
  /// The old resolv.conf is being brought back: what is there may be half of either.
  case resolverFileReturning
  /// A socket file of ours.
  case socket(path: String)
  case downCommand(DownCommand)
  /// A link whose TUN another process has too, so that it need not go with ours.
  case link(name: String, index: UInt32)
  /// A process that was started for the tunnel and leads a group of its own. `started`: as /proc tells, so that another
  /// of the same number is left alone.
  case process(Int32, started: UInt64)
  /// The commands after which the tunnel counts as up have run.
  case up
  /// The commands for its end have been started.
  case ending

  package struct Origin: Equatable, Sendable {
    /// /proc/sys/kernel/random/boot_id.
    package var boot: String
    /// As /proc/self/ns/net names it.
    package var namespace: String
    package var process: Int32
    package var configuration: String

    package init(boot: String, namespace: String, process: Int32, configuration: String) {
      self.boot = boot
      self.namespace = namespace
      self.process = process
      self.configuration = configuration
    }
  }

  package struct DownCommand: Equatable, Sendable {
    package enum Phase: String, Sendable {
      case before = "predown"
      case after = "postdown"
    }
    package var phase: Phase
    /// With %i replaced.
    package var text: String

    package init(_ phase: Phase, _ text: String) {
      self.phase = phase
      self.text = text
    }
  }
}

// MARK: Text

extension JournalRecord {
  /// One line: words with a blank between them, in which everything but plain characters is written %XX.
  package var line: String {
    fields.map(Self.escaped).joined(separator: " ")
  }

  private var fields: [String] {
    switch self {
    case .began(let origin): ["began", origin.boot, origin.namespace, String(origin.process), origin.configuration]
    case .parameter(let path, let before): ["parameter", path, before]
    case .rule(let rule): ["rule"] + Self.words(rule)
    case .ruleRefused(let rule): ["rule-refused"] + Self.words(rule)
    case .guardTable(let name, let family): ["guard", name, String(family.rawValue)]
    case .resolvconf(let entry): ["resolvconf", entry]
    case .resolved(let interface): ["resolved", interface]
    case .resolverFile(let backup):
      switch backup.way {
      case .beside(let kept): ["resolver-file", backup.path, "beside", kept]
      case .link(let target): ["resolver-file", backup.path, "link", target]
      case .absent: ["resolver-file", backup.path, "absent", "-"]
      case .copied(let copy): ["resolver-file", backup.path, "copied", copy]
      }
    case .resolverFileWritten: ["resolver-file-written"]
    case .resolverFileReturning: ["resolver-file-returning"]
    case .socket(let path): ["socket", path]
    case .downCommand(let command): [command.phase.rawValue, command.text]
    case .link(let name, let index): ["link", name, String(index)]
    case .process(let process, let started): ["process", String(process), String(started)]
    case .up: ["up"]
    case .ending: ["ending"]
    }
  }

  /// nil: not a line of a journal.
  package init?(line: some StringProtocol) {
    let words = String(line).split(separator: " ", omittingEmptySubsequences: false).compactMap(Self.unescaped)
    guard let keyword = words.first else { return nil }
    func family(_ text: String) -> IPAddress.Family? { UInt8(text).flatMap(IPAddress.Family.init) }
    switch (keyword, words.count) {
    case ("began", 5):
      guard let process = Int32(words[3]) else { return nil }
      self = .began(Origin(boot: words[1], namespace: words[2], process: process, configuration: words[4]))
    case ("parameter", 3): self = .parameter(path: words[1], before: words[2])
    case ("rule", 7), ("rule-refused", 7):
      guard let family = family(words[1]), let priority = UInt32(words[2]), let table = UInt32(words[3]) else {
        return nil
      }
      var rule = PolicyRule(family: family, table: table)
      rule.priority = priority
      rule.mark = UInt32(words[4])
      rule.isInverted = words[5] == "not"
      rule.suppressPrefixLength = UInt32(words[6])
      self = keyword == "rule" ? .rule(rule) : .ruleRefused(rule)
    case ("guard", 3):
      guard let family = family(words[2]) else { return nil }
      self = .guardTable(name: words[1], family: family)
    case ("resolvconf", 2): self = .resolvconf(entry: words[1])
    case ("resolved", 2): self = .resolved(interface: words[1])
    case ("resolver-file", 4):
      let way: ResolverFileBackup.Way
      switch words[2] {
      case "beside": way = .beside(words[3])
      case "link": way = .link(words[3])
      case "absent": way = .absent
      case "copied": way = .copied(words[3])
      default: return nil
      }
      self = .resolverFile(ResolverFileBackup(path: words[1], way: way))
    case ("resolver-file-written", 1): self = .resolverFileWritten
    case ("resolver-file-returning", 1): self = .resolverFileReturning
    case ("socket", 2): self = .socket(path: words[1])
    case ("predown", 2): self = .downCommand(DownCommand(.before, words[1]))
    case ("postdown", 2): self = .downCommand(DownCommand(.after, words[1]))
    case ("link", 3):
      guard let index = UInt32(words[2]) else { return nil }
      self = .link(name: words[1], index: index)
    case ("process", 3):
      guard let process = Int32(words[1]), process > 1, let started = UInt64(words[2]) else { return nil }
      self = .process(process, started: started)
    case ("up", 1): self = .up
    case ("ending", 1): self = .ending
    default: return nil
    }
  }

  private static func words(_ rule: PolicyRule) -> [String] {
    [
      String(rule.family.rawValue), String(rule.priority), String(rule.table), rule.mark.map { String($0) } ?? "-",
      rule.isInverted ? "not" : "-", rule.suppressPrefixLength.map { String($0) } ?? "-",
    ]
  }

  private static func escaped(_ field: String) -> String {
    var text = ""
    for byte in field.utf8 {
      if byte > 0x20 && byte < 0x7F && byte != UInt8(ascii: "%") {
        text.unicodeScalars.append(Unicode.Scalar(byte))
      } else {
        text += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
      }
    }
    // An empty word would be lost between blanks.
    return text.isEmpty ? "%" : text
  }

  private static func unescaped(_ word: Substring) -> String? {
    if word == "%" { return "" }
    var bytes: [UInt8] = []
    var rest = word.utf8[...]
    while let byte = rest.popFirst() {
      if byte != UInt8(ascii: "%") {
        bytes.append(byte)
        continue
      }
      guard let high = rest.popFirst().flatMap(hexDigit), let low = rest.popFirst().flatMap(hexDigit) else {
        return nil
      }
      bytes.append(high << 4 | low)
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  private static func hexDigit(_ byte: UInt8) -> UInt8? {
    Character(Unicode.Scalar(byte)).hexDigitValue.map(UInt8.init)
  }
}
