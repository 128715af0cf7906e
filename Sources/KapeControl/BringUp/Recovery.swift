import Glibc

/// What to do about a tunnel whose process was killed: everything that it had changed is put back, and its own commands
/// for going down are run if it had been up.
package enum Recovery {
  package enum Failure: Error, Equatable, CustomStringConvertible {
    /// It was made in another network namespace, where nothing can be done from here.
    case elsewhere(process: Int32, namespace: String, folder: String)
    case notPutBack([String], folder: String)
    case journal(SystemError)

    package var description: String {
      switch self {
      case .elsewhere(let process, let namespace, let folder):
        "process \(process), which was killed, had made it in another network namespace (\(namespace)); "
          + "run 'kape down' there, or remove \(folder) if that namespace is gone"
      case .notPutBack(let problems, let folder):
        "not everything that a killed process left behind could be put back: " + problems.joined(separator: "; ")
          + "; what is left to do is in \(folder)/journal"
      case .journal(let error): "\(error)"
      }
    }
  }

  /// Returns false when nothing was left behind. `say` gets what a person should know.
  package static func run(
    _ directory: RunDirectory, _ output: Subprocess.Output = .inherited, say: @Sendable (String) -> Void
  ) async throws(Failure) -> Bool {
    let name = directory.name
    let summary: JournalSummary
    do throws(SystemError) {
      guard let records = try Journal.read(RunDirectory.journal(of: name)) else { return false }
      summary = JournalSummary(records)
    } catch {
      throw .journal(error)
    }
    let hooks = Hooks(interface: name)
    var undo = summary
    var runsCommands = summary.wasUp && !summary.wasEnding
    switch PutBack.standing(of: summary.origin) {
    case .here: break
    case .elsewhere(let namespace):
      throw .elsewhere(process: summary.origin?.process ?? 0, namespace: namespace, folder: directory.path)
    case .beforeRestart:
      // The kernel began anew; a file did not.
      undo.undo = summary.resolverFile.map { [.resolverFile($0)] } ?? []
      runsCommands = false
    }
    if runsCommands {
      do throws(SystemError) {
        try Journal.append(.ending, to: RunDirectory.journal(of: name))
      } catch {
        throw .journal(error)
      }
      for failure in await hooks.runAll(summary.before, output) { say(failure) }
    }
    var problems: [String]
    do throws(NetlinkError) {
      let putBack = try PutBack(name, undo)
      await putBack.run()
      problems = await putBack.problems
      for remark in await putBack.remarks { say(remark) }
    } catch {
      problems = ["\(error)"]
    }
    if runsCommands {
      for failure in await hooks.runAll(summary.after, output) { say(failure) }
    }
    guard problems.isEmpty else { throw .notPutBack(problems, folder: directory.path) }
    _ = try? Files.remove(RunDirectory.journal(of: name))
    return true
  }

  /// The machine was started anew while a tunnel was up: its journal is gone, resolv.conf on disk is still the tunnel's,
  /// and the old one is kept beside it. False: there is nothing of the kind.
  package static func restoreForgottenFile(_ name: String, file: String = NameServices.file) throws(SystemError) -> Bool
  {
    let backup = ResolverFileBackup.beside(file, interface: name)
    guard try backup.original() != nil else { return false }
    guard try Files.text(file)?.hasPrefix(ResolverFile.heading(name)) == true else {
      try backup.forget()
      return false
    }
    try backup.restore()
    return true
  }

  /// Of every tunnel whose process is gone and whose configuration's name begins with `prefix`, and of resolv.conf files
  /// that no running tunnel answers for. Returns whether everything could be put back, `say` gets what was.
  @discardableResult
  package static func runAll(of prefix: String = "", say: @Sendable (String) -> Void) async -> Bool {
    var isWhole = true
    for name in RunDirectory.names() where RunDirectory.holder(of: name) == nil {
      let records = ((try? Journal.read(RunDirectory.journal(of: name))) ?? nil) ?? []
      guard JournalSummary(records).origin?.configuration.hasPrefix(prefix) ?? prefix.isEmpty else { continue }
      do {
        let directory = try RunDirectory(name)
        _ = try await run(directory) { say("\(name): " + $0) }
        directory.remove()
        say("\(name): its process had been killed; what it left behind is put back")
      } catch RunDirectory.Failure.held {
        continue
      } catch {
        say("\(name): \(error)")
        isWhole = false
      }
    }
    // One whose interface is there may be a tunnel that keeps its state elsewhere.
    for name in forgottenFiles() where RunDirectory.holder(of: name) == nil && if_nametoindex(name) == 0 {
      do throws(SystemError) {
        if try restoreForgottenFile(name) { say("\(name): put \(NameServices.file) back as it was before") }
      } catch {
        say("\(name): \(error)")
        isWhole = false
      }
    }
    return isWhole
  }

  /// Interfaces for which an old resolv.conf is kept beside the new one.
  private static func forgottenFiles() -> [String] {
    Files.names(in: "/etc").compactMap { file in
      file.hasPrefix(ResolverFileBackup.keptPrefix) ? String(file.dropFirst(ResolverFileBackup.keptPrefix.count)) : nil
    }.filter(ConfigurationFile.isInterfaceName)
  }
}
