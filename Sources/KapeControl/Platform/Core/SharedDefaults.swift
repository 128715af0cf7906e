import Foundation
import Synchronization

/// User defaults of a group. On Linux a value reaches the disk only by `synchronize()`, not even at exit, and a process
/// that runs goes on to see the old ones; so it is called at each moment at which app and tunnel have to agree.
package enum SharedDefaults {
  private static let groups = Mutex<Set<String>>([])

  /// Writes what this process has set in the group's suite, by whatever instance, and reads what others have; again when
  /// the process exits.
  package static func synchronize(_ group: String) {
    let isFirst = groups.withLock { groups in
      let isFirst = groups.isEmpty
      groups.insert(group)
      return isFirst
    }
    if isFirst { atexit { SharedDefaults.synchronizeAll() } }
    UserDefaults(suiteName: group)?.synchronize()
  }

  /// The same for every group that this process has had to do with: before a request to the daemon, and before a tunnel
  /// starts anew in a process that goes on.
  package static func synchronizeAll() {
    for group in groups.withLock({ $0 }) { UserDefaults(suiteName: group)?.synchronize() }
  }
}
