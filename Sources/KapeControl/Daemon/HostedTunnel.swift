import Glibc
internal import KapeProtocols

/// One tunnel from the moment that its name is taken until everything is put back: its folder and journal, its TUN, the
/// socket on which `kape status` and `kape down` ask for it.
final class HostedTunnel: Sendable {
  /// How the journal's first record says whose it is.
  static func origin(_ profile: ProviderProfile) -> String { "kaped:\(profile.user):\(profile.id)" }
  static let originPrefix = "kaped:"

  let network: TunnelNetwork
  private let directory: RunDirectory
  private let control: ControlSocket

  var name: String { directory.name }

  private init(_ directory: RunDirectory, _ network: TunnelNetwork, _ control: ControlSocket) {
    self.directory = directory
    self.network = network
    self.control = control
  }

  /// The first free name: kape0, kape1, … What a killed process left behind under it is put back first.
  static func make(
    for profile: ProviderProfile, mark: UInt32, _ process: StartedProcess?, _ say: @Sendable (String) -> Void
  ) async throws -> HostedTunnel {
    let directory = try await claim(say)
    do {
      let journal = try Journal(RunDirectory.journal(of: directory.name))
      try journal.append(.began(PutBack.currentOrigin(configuration: origin(profile))))
      if let process { try journal.append(.process(process.identifier, started: process.started)) }
      let control = try ControlSocket(RunDirectory.socket(of: directory.name))
      return HostedTunnel(directory, try TunnelNetwork(directory, journal, mark: mark), control)
    } catch {
      directory.remove()
      throw error
    }
  }

  private static func claim(_ say: @Sendable (String) -> Void) async throws -> RunDirectory {
    for number in 0..<1000 {
      let name = "kape\(number)"
      do throws(RunDirectory.Failure) {
        let directory = try RunDirectory(name)
        if await isFree(directory, say) { return directory }
      } catch {
        if case .system(let error) = error { throw error }
      }
    }
    throw IPCFailure(.busy, "all names of interfaces are taken")
  }

  private static func isFree(_ directory: RunDirectory, _ say: @Sendable (String) -> Void) async -> Bool {
    do throws(Recovery.Failure) {
      if try await Recovery.run(directory, say: say) { say("\(directory.name): put back what was left behind") }
    } catch {
      say("\(directory.name): \(error)")
      return false
    }
    if (try? Recovery.restoreForgottenFile(directory.name)) == true {
      say("\(directory.name): put \(NameServices.file) back as it was before")
    }
    if if_nametoindex(directory.name) == 0 { return true }
    directory.remove()
    return false
  }

  /// Answers on its socket until the task is cancelled.
  func serve(
    _ reactor: Reactor, report: @escaping @Sendable () async -> InterfaceReport,
    down: @escaping @Sendable (ControlClient) async -> Void
  ) async {
    try? await control.run(reactor) { request, client in
      switch request {
      case .statusText, .statusJSON:
        let report = await report()
        client.out(
          request == .statusJSON ? StatusJSON.text(report) : StatusText.text([report], now: Timestamp.now()))
        client.finish(0)
      case .save:
        client.error("a tunnel of kaped has no file that it could be saved to")
        client.finish(1)
      case .down: await down(client)
      }
    }
  }

  /// Puts everything back and takes the interface away. Returns what could not be, in words; then the journal stays, for
  /// `kape recover`.
  func end() async -> [String] {
    do {
      // The provider's process is the session's to end, or goes on.
      var summary = JournalSummary(try Journal.read(RunDirectory.journal(of: name)) ?? [])
      summary.undo.removeAll { if case .process = $0 { true } else { false } }
      let putBack = try PutBack(name, summary)
      await putBack.run()
      let problems = await putBack.problems
      if problems.isEmpty { directory.remove() }
      return problems
    } catch {
      return ["\(error)"]
    }
  }
}
