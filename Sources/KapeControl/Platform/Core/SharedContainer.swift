import Foundation
package import KapeControl

/// The folder that the processes of one group share: `$KAPE_STATE_HOME/GROUP`, else `$XDG_STATE_HOME/kape/GROUP`, else
/// `~/.local/state/kape/GROUP`. For its owner alone (0700).
package struct SharedContainer: Hashable, Sendable {
  package let path: String

  /// The group's folder for this process; it need not exist.
  ///
  /// - Throws: `SharedContainerError`.
  package init(group: String) throws(SharedContainerError) {
    let mayAsk = ProcessTrust.environmentIsTheUsers
    try self.init(group: group, home: Self.homeFolder()) { name in
      // kaped gives the tunnel the XDG variables of the user that it runs as.
      mayAsk || name.hasPrefix("XDG_") && !isSecureExecution ? KapeControl.variable(name) : nil
    }
  }

  /// A folder of which the path is known.
  package init(path: String) { self.path = path }

  init(
    group: String, home: String?, variable: (String) -> String?
  ) throws(SharedContainerError) {
    path = try Self.base(home: home, variable: variable) + "/" + group
  }

  private static func base(home: String?, variable: (String) -> String?) throws(SharedContainerError) -> String {
    if let given = variable("KAPE_STATE_HOME"), !given.isEmpty {
      guard given.hasPrefix("/") else { throw .relative(given) }
      return given
    }
    // Relative ones are to be passed over: XDG Base Directory Specification 0.8.
    if let given = variable("XDG_STATE_HOME"), given.hasPrefix("/") { return given + "/kape" }
    guard let home, home.hasPrefix("/") else { throw .noHome }
    return home + "/.local/state/kape"
  }

  /// $HOME, else what the user database says.
  private static func homeFolder() -> String? {
    if !isSecureExecution, let given = variable("HOME"), given.hasPrefix("/") { return given }
    var entry = passwd()
    var found: UnsafeMutablePointer<passwd>?
    return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 1 << 14) { buffer in
      guard let start = buffer.baseAddress, getpwuid_r(geteuid(), &entry, start, buffer.count, &found) == 0,
        found != nil, let folder = entry.pw_dir
      else { return nil }
      return String(cString: folder)
    }
  }

  /// What the app says: the choice of location and protocol, the kind of device.
  package var configuration: String { path + "/config.json" }
  /// What the tunnel says.
  package var status: String { path + "/status.json" }
  package var locations: String { path + "/locations.json" }
  /// The folder of one session.
  package func session(_ keychainService: String) -> String { path + "/session/" + keychainService }

  /// Makes the folder, and what is missing above it.
  package func make() throws(SystemError) {
    try OwnedFolder.make(path)
  }
}

package enum SharedContainerError: Error, Equatable, CustomStringConvertible {
  case relative(String)
  case noHome

  package var description: String {
    switch self {
    case .relative(let path):
      "KAPE_STATE_HOME is '\(path)': it has to be an absolute path; unset it, or write it from the root on"
    case .noHome:
      "no folder for the shared state: set KAPE_STATE_HOME, XDG_STATE_HOME or HOME to an absolute path"
    }
  }
}
