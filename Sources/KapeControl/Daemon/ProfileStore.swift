import Glibc

/// Profiles in files that only root can read and write, FOLDER/UID/ID.json, each replaced by rename so that there is
/// always one whole file.
package struct ProfileStore: Sendable {
  /// Of one user: nobody fills the disk.
  package static let mostOfAUser = 64
  private static let largest = 1 << 20

  package let folder: String

  /// KAPE_STATE_DIR, or /var/lib/kape.
  package static var standardFolder: String {
    let given = variable("KAPE_STATE_DIR") ?? ""
    return (given.isEmpty ? "/var/lib/kape" : given) + "/profiles"
  }

  package init(_ folder: String) throws(SystemError) {
    self.folder = folder
    try Files.makeFolders(folder, mode: 0o700)
    var information = stat()
    guard lstat(folder, &information) == 0, information.st_mode & S_IFMT == S_IFDIR, information.st_uid == geteuid(),
      chmod(folder, 0o700) == 0
    else { throw SystemError(folder, code: EPERM) }
  }

  /// Those that can be read; of the others `complain` is told, and their files stay.
  package func all(_ complain: (String) -> Void) -> [ProviderProfile] {
    Files.names(in: folder).compactMap { UInt32($0) }.flatMap { user in
      Files.names(in: folder + "/\(user)").filter { $0.hasSuffix(".json") }.compactMap { file in
        let path = folder + "/\(user)/" + file
        do {
          let bytes = try Files.read(path, limit: Self.largest) ?? []
          let profile = try ProviderProfile(try JSONReader.read(bytes))
          guard profile.user == user, profile.id + ".json" == file else {
            throw JSONFields.Fault(description: "it is not in its place")
          }
          return profile
        } catch {
          complain("\(path): \(error)")
          return nil
        }
      }
    }
  }

  package func save(_ profile: ProviderProfile) throws(SystemError) {
    let user = folder + "/\(profile.user)"
    try Files.makeFolders(user, mode: 0o700)
    let path = user + "/\(profile.id).json"
    let scratch = user + "/.new"
    try Files.remove(scratch)
    let raw = open(scratch, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard raw >= 0 else { throw SystemError(scratch) }
    let file = Descriptor(owning: raw)
    do throws(SystemError) {
      try Files.write(Array((profile.json.text + "\n").utf8), to: file, scratch)
      guard fsync(file.raw) == 0, rename(scratch, path) == 0 else { throw SystemError(path) }
    } catch {
      unlink(scratch)
      throw error
    }
  }

  /// False: there was none.
  package func remove(_ id: String, of user: UInt32) throws(SystemError) -> Bool {
    let removed = try Files.remove(folder + "/\(user)/\(id).json")
    rmdir(folder + "/\(user)")
    return removed
  }
}
