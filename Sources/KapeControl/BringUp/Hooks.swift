import Glibc

/// The commands that a configuration brings along, run as wg-quick(8) does: by bash, or sh where there is no bash, with
/// %i for the interface's name.
package struct Hooks: Sendable {
  /// Going down does not wait longer for one command: what else there is to put back must not depend on it.
  package static let patience: Duration = .seconds(90)

  package struct Failure: Error, CustomStringConvertible {
    package var command: String
    package var outcome: String
    package var description: String { "'\(command)' failed: \(outcome)" }
  }

  let interface: String

  package init(interface: String) { self.interface = interface }

  package func expand(_ command: String) -> String {
    var text = ""
    var rest = command[...]
    while let percent = rest.firstIndex(of: "%") {
      let next = rest.index(after: percent)
      text += rest[..<percent]
      if next < rest.endIndex, rest[next] == "i" {
        text += interface
        rest = rest[rest.index(after: next)...]
      } else {
        text += "%"
        rest = rest[next...]
      }
    }
    return text + rest
  }

  /// One after the other; the first that fails ends it. A cancelled task ends the one that runs.
  package func run(_ commands: [String], _ output: Subprocess.Output = .inherited) async throws {
    for command in commands {
      try Task.checkCancellation()
      try await run(expand(command), output)
    }
  }

  /// All of them, whatever becomes of each; gives what failed.
  package func runAll(_ commands: [String], _ output: Subprocess.Output = .inherited) async -> [String] {
    var failures: [String] = []
    for command in commands {
      do {
        try await run(expand(command), output, within: Self.patience)
      } catch {
        failures.append("\(error)")
      }
    }
    return failures
  }

  private func run(
    _ command: String, _ output: Subprocess.Output, within deadline: Duration? = nil
  ) async throws {
    let shell =
      access("/bin/bash", X_OK) == 0
      ? Subprocess("/bin/bash", ["-O", "extglob", "-e", "-o", "pipefail", "-c", command])
      : Subprocess("/bin/sh", ["-e", "-c", command])
    let outcome = try await shell.run(output, within: deadline)
    guard outcome.isSuccess else { throw Failure(command: command, outcome: "\(outcome)") }
  }
}
