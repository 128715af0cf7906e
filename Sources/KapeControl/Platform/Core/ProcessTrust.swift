import Foundation
import KapeControl

/// Whose environment this process has.
package enum ProcessTrust {
  /// Set by `kaped` for the tunnel processes that it starts.
  package static let daemonVariable = "KAPE_STARTED_BY"

  /// False in a program with another's privileges, and in one that the daemon started: what a user's shell says about
  /// folders is then not to be followed.
  package static var environmentIsTheUsers: Bool {
    !isSecureExecution && variable(daemonVariable) != "kaped"
  }
}
