import Glibc
import Testing

@testable import KapeControl

@Suite struct ProviderProfileTests {
  static let record = ExecutableRecord(
    path: "/usr/libexec/x y", device: 7, inode: 9, size: 11, modified: -3, digest: Array(0..<32))

  private func profile(_ id: String = "home", user: UInt32 = 1000) -> ProviderProfile {
    ProviderProfile(
      id: id, user: user, group: 1001, name: "Zu Hause", executable: Self.record, arguments: ["-v", ""],
      appGroup: "group.example", stateHome: "/var/x", isEnabled: false, configuration: [0, 255])
  }

  @Test func aProfileReadsBack() throws {
    #expect(try ProviderProfile(profile().json) == profile())
    var other = profile()
    other.stateHome = nil
    #expect(try ProviderProfile(try JSONReader.read(Array(other.json.text.utf8))) == other)
  }

  @Test(
    arguments: [
      ("id", .string("../../etc")), ("id", .string(".hidden")), ("id", .string("")), ("id", .string("a/b")),
      ("id", .string(String(repeating: "a", count: 65))), ("group", .string("a/b")), ("state_home", .string("var")),
      ("argv", .array([.string("a\0b")])), ("executable", .null), ("uid", .negative(-1)), ("new", .bool(true)),
    ] as [(String, JSONValue)])
  func whatCannotBeIsRefused(_ name: String, _ value: JSONValue) throws {
    guard case .object(var members) = profile().json else { return }
    members.removeAll { $0.name == name }
    members.append(.init(name, value))
    #expect(throws: JSONFields.Fault.self) { try ProviderProfile(.object(members)) }
  }

  @Test func theStoreKeepsWholeFilesForRootAlone() throws {
    let folder = try TemporaryFolder()
    let store = try ProfileStore(folder.path + "/profiles")
    try store.save(profile())
    try store.save(profile("work"))
    try store.save(profile("home", user: 7))
    var changed = profile()
    changed.name = "changed"
    try store.save(changed)
    var complaints: [String] = []
    #expect(
      store.all { complaints.append($0) }.map { "\($0.user) \($0.id) \($0.name)" }.sorted() == [
        "1000 home changed", "1000 work Zu Hause", "7 home Zu Hause",
      ])
    #expect(complaints.isEmpty)
    #expect(mode(store.folder) == 0o700)
    #expect(mode(store.folder + "/1000") == 0o700)
    #expect(mode(store.folder + "/1000/home.json") == 0o600)
    #expect(Files.names(in: store.folder + "/1000") == ["home.json", "work.json"])
    #expect(try store.remove("home", of: 7))
    #expect(try !store.remove("home", of: 7))
    #expect(!Files.exists(store.folder + "/7"))
  }

  private func mode(_ path: String) -> UInt32 {
    var information = stat()
    return stat(path, &information) == 0 ? information.st_mode & 0o777 : 0
  }

  @Test func aFileThatCannotBeReadIsNamedAndStays() throws {
    let folder = try TemporaryFolder()
    let store = try ProfileStore(folder.path)
    try store.save(profile())
    try Files.write(Array("{".utf8), to: folder.path + "/1000/broken.json")
    // One user's profile in another's place.
    try Files.write(Array(profile("moved", user: 7).json.text.utf8), to: folder.path + "/1000/moved.json")
    try Files.write(Array(profile("other").json.text.utf8), to: folder.path + "/1000/renamed.json")
    var complaints: [String] = []
    #expect(store.all { complaints.append($0) }.map(\.id) == ["home"])
    #expect(complaints.count == 3)
    #expect(complaints.allSatisfy { $0.contains("/1000/") })
    #expect(Files.names(in: folder.path + "/1000").count == 4)
  }

  @Test func theEnvironmentIsTheUsersAndNobodyElses() {
    let account = UserAccount(user: 7, group: 7, groups: [7], name: "ada", home: "/home/ada")
    #expect(
      account.environment(runtimeFolder: "/run/user/7") == [
        "PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "HOME=/home/ada", "USER=ada", "LOGNAME=ada",
        "XDG_CONFIG_HOME=/home/ada/.config", "XDG_CACHE_HOME=/home/ada/.cache",
        "XDG_DATA_HOME=/home/ada/.local/share", "XDG_STATE_HOME=/home/ada/.local/state", "XDG_RUNTIME_DIR=/run/user/7",
      ])
    let unknown = UserAccount(user: 4711, group: 4712, groups: [4712])
    #expect(
      unknown.environment(runtimeFolder: nil) == ["PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "HOME=/"])
  }

  @Test func accountsAreLookedUp() async throws {
    let root = try await UserAccount.find(0, fallbackGroup: 99)
    #expect(root.name == "root" && root.group == 0 && root.home == "/root" && root.groups.contains(0))
    let nobody = try await UserAccount.find(4_000_000_001, fallbackGroup: 99)
    #expect(nobody == UserAccount(user: 4_000_000_001, group: 99, groups: [99]))
  }
}
