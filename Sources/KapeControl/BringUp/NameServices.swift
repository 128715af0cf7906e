import Glibc
internal import KapeProtocols

/// Name servers and search domains of the system while a tunnel is up: by resolvconf(8) or resolvectl(1) when they are
/// there, else in /etc/resolv.conf.
package struct NameServices: Sendable {
  package enum Method: String, Sendable {
    case resolvconf
    case resolved = "systemd-resolved"
    case file = "resolv.conf"
  }

  package static let file = "/etc/resolv.conf"
  private static let resolvedFolder = "/run/systemd/resolve"
  /// Neither program has reason to take longer; a tunnel does not wait for one that hangs.
  package static let longest: Duration = .seconds(30)

  package struct Failure: Error, CustomStringConvertible {
    package var description: String
  }

  let interface: String
  let wanted: ResolverFile.Content
  /// Domains that the servers are asked about; nil: every name.
  let domains: [String]?
  /// Where copies go.
  let folder: String
  /// For each program that is run.
  let deadline: Duration

  package init(
    interface: String, wanted: ResolverFile.Content, domains: [String]? = nil, folder: String,
    deadline: Duration = Self.longest
  ) {
    self.deadline = deadline
    self.interface = interface
    self.wanted = wanted
    self.domains = domains
    self.folder = folder
  }

  /// The way that was used; each change is written down first. Output of the programs goes where ours does. What this
  /// tunnel had applied before is replaced: `standing` is what it then noted of resolv.conf, if anything.
  package func apply(
    replacing standing: ResolverFileBackup? = nil, _ note: (JournalRecord) throws -> Void
  ) async throws -> Method {
    if let program = Subprocess.find("resolvconf") {
      try refuseDomains("resolvconf(8)")
      let entry = Self.entry(interface, order: try Files.text("/etc/resolvconf/interface-order"))
      try note(.resolvconf(entry: entry))
      // Exclusive, unless that would leave no server at all.
      let options = ["-a", entry, "-m", "0"] + (wanted.servers.isEmpty ? [] : ["-x"])
      let outcome = try await Subprocess(program, options, input: resolvconfInput).run(within: deadline)
      guard outcome.isSuccess else { throw Failure(description: "\(program) failed: \(outcome)") }
      return .resolvconf
    }
    if let program = Subprocess.find("resolvectl"), Files.exists(Self.resolvedFolder) {
      try note(.resolved(interface: interface))
      if try await applyToResolved(program) { return .resolved }
    }
    try refuseDomains(Self.file)
    let backup = standing ?? ResolverFileBackup(Self.file, interface: interface, folder: folder)
    let original = try standing.map { try $0.originalText() } ?? Files.text(Self.file) ?? ""
    // Until the new file is whole, what is there is not what is remembered as ours.
    if standing != nil { try note(.resolverFileReturning) }
    let text = ResolverFile.write(wanted, over: original, interface: interface)
    try Files.write(Array(text.utf8), to: Self.ours(in: folder))
    try note(.resolverFile(backup))
    try backup.replace(with: text)
    try note(.resolverFileWritten)
    return .file
  }

  /// Only systemd-resolved asks different servers about different names.
  private func refuseDomains(_ way: String) throws(Failure) {
    guard let domains else { return }
    throw Failure(
      description: "name servers for \(domains.joined(separator: ", ")) only: \(way) cannot say that, it takes "
        + "systemd-resolved with resolvectl(1)")
  }

  /// What resolv.conf says while this tunnel is up, to recognise it.
  static func ours(in folder: String) -> String { folder + "/resolv.conf.ours" }

  private var resolvconfInput: String {
    wanted.servers.map { "nameserver \($0)\n" }.joined()
      + (wanted.search.isEmpty ? "" : "search " + wanted.search.joined(separator: " ") + "\n")
  }

  /// False: the service does not run, whatever is installed.
  private func applyToResolved(_ program: String) async throws -> Bool {
    var commands: [[String]] = []
    if !wanted.servers.isEmpty {
      commands.append(["dns", interface] + wanted.servers.map(\.description))
      commands.append(["default-route", interface, domains == nil ? "yes" : "no"])
    }
    // "~." sends every name there, as resolvconf's exclusive entries do.
    let routed = wanted.servers.isEmpty ? [] : domains.map { $0.map { "~" + $0 } } ?? ["~."]
    commands.append(["domain", interface] + routed + wanted.search)
    for command in commands {
      guard try await Subprocess(program, command).run(within: deadline).isSuccess else { return false }
    }
    return true
  }

  /// The name of an entry: with the prefix that the machine's order of interfaces gives to tunnels, if it has one.
  package static func entry(_ interface: String, order: String?) -> String {
    for line in (order ?? "").split(separator: "\n") {
      guard line.hasSuffix("*") else { continue }
      let prefix = line.dropLast()
      if !prefix.isEmpty, prefix.utf8.allSatisfy(isPlain) { return prefix + "." + interface }
    }
    return interface
  }

  private static func isPlain(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"):
      true
    default: false
    }
  }

  // MARK: Back

  package static func removeEntry(_ entry: String) async throws {
    guard let program = Subprocess.find("resolvconf") else {
      throw Failure(description: "resolvconf is not there any more")
    }
    let outcome = try await Subprocess(program, ["-d", entry, "-f"]).run(within: longest)
    guard outcome.isSuccess else { throw Failure(description: "\(program) -d \(entry) failed: \(outcome)") }
  }

  /// The service forgets an interface by itself when it goes; this is for one that is still there.
  package static func revertResolved(_ interface: String) async throws {
    guard if_nametoindex(interface) != 0, let program = Subprocess.find("resolvectl") else { return }
    _ = try await Subprocess(program, ["revert", interface]).run(.sink { _ in }, within: longest)
  }
}
