import Glibc

/// A user as the system's database knows him: what a process of his starts with. A number without an account has no
/// name, no home and no groups but the one that he was seen with.
package struct UserAccount: Equatable, Sendable {
  package var user: UInt32
  package var group: UInt32
  /// The supplementary ones, `group` among them.
  package var groups: [UInt32]
  package var name: String?
  package var home: String?

  package init(user: UInt32, group: UInt32, groups: [UInt32], name: String? = nil, home: String? = nil) {
    self.user = user
    self.group = group
    self.groups = groups
    self.name = name
    self.home = home
  }

  /// Asks the database, which may be across a network: on a thread of its own.
  package static func find(_ user: UInt32, fallbackGroup: UInt32) async throws -> UserAccount {
    try await onThread { () throws(SystemError) in try look(user, fallbackGroup) }
  }

  private static func look(_ user: UInt32, _ fallbackGroup: UInt32) throws(SystemError) -> UserAccount {
    var capacity = 16_384
    while capacity <= 1 << 20 {
      var entry = passwd()
      var found: UnsafeMutablePointer<passwd>?
      var code: Int32 = 0
      var account: UserAccount?
      withUnsafeTemporaryAllocation(of: CChar.self, capacity: capacity) { buffer in
        guard let start = buffer.baseAddress else { return }
        code = getpwuid_r(user, &entry, start, buffer.count, &found)
        if code == 0, found != nil { account = UserAccount(entry) }
      }
      if let account { return account }
      // Different databases say "there is none" in different ways.
      if [0, ENOENT, ESRCH, EBADF, EPERM].contains(code) {
        return UserAccount(user: user, group: fallbackGroup, groups: [fallbackGroup])
      }
      guard code == ERANGE else { throw SystemError("look up user \(user)", code: code) }
      capacity *= 4
    }
    throw SystemError("look up user \(user)", code: ERANGE)
  }

  private init?(_ entry: passwd) {
    guard let name = entry.pw_name else { return nil }
    var groups: [gid_t] = []
    var count: Int32 = 32
    for _ in 0..<8 {
      groups = Array(repeating: 0, count: Int(count))
      if getgrouplist(name, entry.pw_gid, &groups, &count) >= 0 { break }
      count = max(count, Int32(groups.count) * 2)
    }
    let home = entry.pw_dir.map { String(cString: $0) } ?? ""
    self.init(
      user: entry.pw_uid, group: entry.pw_gid, groups: groups.prefix(Int(max(0, count))).map { UInt32($0) },
      name: String(cString: name), home: home.hasPrefix("/") ? home : nil)
  }

  /// What a process of his has in its environment: nothing of whoever starts it. `runtimeFolder`: of his session, if
  /// there is one.
  package func environment(runtimeFolder: String?) -> [String] {
    var variables = ["PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "HOME=" + (home ?? "/")]
    if let name { variables += ["USER=" + name, "LOGNAME=" + name] }
    if let home {
      variables += [
        "XDG_CONFIG_HOME=\(home)/.config", "XDG_CACHE_HOME=\(home)/.cache", "XDG_DATA_HOME=\(home)/.local/share",
        "XDG_STATE_HOME=\(home)/.local/state",
      ]
    }
    if let runtimeFolder { variables.append("XDG_RUNTIME_DIR=" + runtimeFolder) }
    return variables
  }

  /// /run/user/UID, where it is his.
  package var runtimeFolder: String? {
    let path = "/run/user/\(user)"
    var information = stat()
    guard lstat(path, &information) == 0, information.st_mode & S_IFMT == S_IFDIR, information.st_uid == user else {
      return nil
    }
    return path
  }
}
