import Glibc
import KapeProtocols
import Testing

@testable import KapeControl

private func addresses(_ texts: String...) throws -> [ScopedAddress] {
  try texts.map { text in
    let address = ScopedAddress(text: Array(text.utf8).span.bytes)
    return try #require(address)
  }
}

@Suite struct ResolverFileTests {
  @Test func serversAndSearchDomainsAreRead() throws {
    let content = ResolverFile.read(
      """
      # nameserver 192.0.2.9
      domain old.example
      nameserver 192.0.2.1
      nameserver\tfe80::1%eth0
      search a.example  b.example
      nameserver nonsense
       nameserver 192.0.2.8x
      ; comment
      options ndots:2
      """)
    #expect(content.servers == (try addresses("192.0.2.1", "fe80::1%eth0")))
    #expect(content.search == ["a.example", "b.example"])
    #expect(ResolverFile.read("") == ResolverFile.Content())
  }

  @Test func whatTheTunnelDoesNotNameStays() throws {
    let original = "search old.example\nnameserver 192.0.2.1\noptions edns0\n# a remark\nsortlist 192.0.2.0\n"
    let full = ResolverFile.write(
      .init(servers: try addresses("10.0.0.1", "fd00::1"), search: ["new.example"]), over: original, interface: "wg0")
    #expect(full.hasPrefix("# while the tunnel wg0 is up"))
    #expect(
      full.split(separator: "\n").dropFirst() == [
        "nameserver 10.0.0.1", "nameserver fd00::1", "search new.example", "options edns0", "sortlist 192.0.2.0",
      ])
    let searchOnly = ResolverFile.write(.init(search: ["new.example"]), over: original, interface: "wg0")
    #expect(
      searchOnly.split(separator: "\n").dropFirst() == [
        "search new.example", "nameserver 192.0.2.1", "options edns0", "sortlist 192.0.2.0",
      ])
    let serversOnly = ResolverFile.write(.init(servers: try addresses("10.0.0.1")), over: original, interface: "wg0")
    #expect(!serversOnly.contains("old.example"))
  }

  @Test func hostsAreFoundByAnyOfTheirNames() throws {
    let text =
      "127.0.0.1 localhost\n192.0.2.5\tvpn.example vpn # not x\n2001:db8::5 VPN.Example\n192.0.2.5 vpn.example\nbad vpn.example\n"
    #expect(
      HostsFile.addresses(of: "vpn.EXAMPLE", in: text) == [
        try #require(IPAddress("192.0.2.5")), try #require(IPAddress("2001:db8::5")),
      ])
    #expect(HostsFile.addresses(of: "x", in: text).isEmpty)
    #expect(HostsFile.addresses(of: "192.0.2.5", in: text).isEmpty)
  }

  // MARK: Replacing and restoring

  enum Before: String, CaseIterable, Sendable { case file, link, dangling, absent }

  /// Everything that can be seen of a folder: names, kinds, modes, contents, targets.
  private func look(_ folder: String) throws -> [String] {
    try Files.names(in: folder).map { name in
      var information = stat()
      lstat(folder + "/" + name, &information)
      let text = try Files.text(folder + "/" + name) ?? "-"
      return "\(name) \(information.st_mode) \(information.st_ino) \(Files.link(folder + "/" + name) ?? "") \(text)"
    }
  }

  private func prepare(_ before: Before, _ folder: String) throws -> String {
    let path = folder + "/resolv.conf"
    switch before {
    case .file: try Files.write(Array("nameserver 192.0.2.1\n# no end".utf8), to: path, mode: 0o640)
    case .link:
      try Files.write(Array("nameserver 192.0.2.2\n".utf8), to: folder + "/stub")
      symlink("stub", path)
    case .dangling: symlink("nowhere", path)
    case .absent: break
    }
    return path
  }

  @Test(arguments: Before.allCases) func whatWasThereComesBackAsItWas(_ before: Before) throws {
    let etc = try TemporaryFolder()
    let run = try TemporaryFolder()
    let path = try prepare(before, etc.path)
    var seen = try look(etc.path)
    let backup = ResolverFileBackup(path, interface: "wg0", folder: run.path)
    try backup.replace(with: "nameserver 10.0.0.1\n")
    #expect(try Files.text(path) == "nameserver 10.0.0.1\n")
    try backup.restore()
    if before == .link {
      // A symbolic link made anew has another inode; nothing else may differ.
      func withoutInode(_ lines: [String]) -> [String] {
        lines.map {
          $0.split(separator: " ", maxSplits: 3).enumerated().filter { $0.offset != 2 }.map(\.element).joined(
            separator: " ")
        }
      }
      seen = withoutInode(seen)
      #expect(withoutInode(try look(etc.path)) == seen)
    } else if before != .dangling {
      #expect(try look(etc.path) == seen)
    }
    #expect(Files.names(in: run.path).isEmpty)
    // Once more does no harm.
    try backup.restore()
    if before == .file { #expect(try look(etc.path) == seen) }
  }

  @Test func aFileInPlaceKeepsItsInode() throws {
    let etc = try TemporaryFolder()
    let run = try TemporaryFolder()
    let path = try prepare(.file, etc.path)
    let seen = try look(etc.path)
    let backup = ResolverFileBackup(path: path, way: .copied(run.path + "/before"))
    try backup.replace(with: "x")
    try backup.replace(with: "nameserver 10.0.0.1\n")
    #expect(try Files.text(path) == "nameserver 10.0.0.1\n")
    try backup.restore()
    #expect(try look(etc.path) == seen)
  }

  @Test func whatCouldNotBeWrittenNeedNotBePutBack() throws {
    let run = try TemporaryFolder()
    // Nobody may write this one, whoever they are.
    let backup = ResolverFileBackup(path: "/proc/sys/kernel/ostype", way: .copied(run.path + "/before"))
    #expect(throws: SystemError.self) { try backup.replace(with: "nameserver 10.0.0.1\n") }
    #expect(Files.names(in: run.path) == ["before"])
    try backup.restore()
    #expect(Files.names(in: run.path).isEmpty)
  }

  @Test func aStopBetweenKeepingAndReplacingIsUndone() throws {
    let etc = try TemporaryFolder()
    let run = try TemporaryFolder()
    let path = try prepare(.file, etc.path)
    let seen = try look(etc.path)
    let backup = ResolverFileBackup(path, interface: "wg0", folder: run.path)
    guard case .beside(let kept) = backup.way else {
      Issue.record("\(backup)")
      return
    }
    link(path, kept)
    try Files.write(Array("half".utf8), to: etc.path + "/.resolv.conf.new-kape")
    try backup.restore()
    #expect(try look(etc.path) == seen)
  }

  @Test func mountsAreSeen() {
    let table = "36 35 98:0 / /etc/resolv.conf rw - ext3 /dev/root rw\n37 35 98:0 / /with\\040blank rw - ext3 x rw\n"
    #expect(MountPoints.contains("/etc/resolv.conf", table: table))
    #expect(MountPoints.contains("/with blank", table: table))
    #expect(!MountPoints.contains("/etc", table: table))
    #expect(!MountPoints.contains("/etc", table: nil))
  }
}
