import Glibc
internal import KapeProtocols

/// kaped: keeps the profiles that apps install, starts their providers, and does for these what takes privilege.
package actor Daemon {
  /// One user's profile of that name.
  struct Key: Hashable, Sendable {
    var user: UInt32
    var id: String
  }

  package struct Options: Sendable {
    package var log: EventLog
    package var deadlines = ProviderDeadlines()
    package var clock: any Clock<Duration> = ContinuousClock()
    package var profileFolder = ProfileStore.standardFolder

    package init(log: EventLog) { self.log = log }
  }

  package enum Failure: Error, CustomStringConvertible {
    /// Another one runs.
    case held(by: Int32)
    case system(SystemError)

    package var description: String {
      switch self {
      case .held(let process): "\(SocketHolder(processIdentifier: process)) is kaped already"
      case .system(let error): "\(error)"
      }
    }
  }

  /// Connections at once, in all and of one user that is not root.
  private static let mostClients = 512
  private static let mostClientsOfAUser = 64

  package static var socketPath: String { RunDirectory.base + "/kaped.sock" }

  nonisolated let options: Options
  nonisolated let reactor: Reactor
  nonisolated let store: ProfileStore
  private let lock: DaemonLock
  private let socket: Descriptor
  var profiles: [Key: ProviderProfile] = [:]
  var sessions: [Key: ProviderSession] = [:]
  private var marks: Set<UInt32> = []
  private var clients: [UInt32: Int] = [:]
  /// Users for whom a file is looked at.
  var measuring: Set<UInt32> = []
  /// One request that chooses which tunnel runs at a time.
  let starting = AsyncLock()

  /// Takes the socket. What an earlier one left behind is put back before anybody is listened to.
  package init(_ options: Options, _ reactor: Reactor) async throws(Failure) {
    self.options = options
    self.reactor = reactor
    do throws(SystemError) {
      lock = try DaemonLock()
      store = try ProfileStore(options.profileFolder)
    } catch {
      if error.code == EWOULDBLOCK { throw .held(by: DaemonLock.holder) }
      throw .system(error)
    }
    let log = options.log
    for profile in store.all({ log.error("profile", ["text": $0]) }) {
      profiles[Key(user: profile.user, id: profile.id)] = profile
    }
    await Recovery.runAll(of: HostedTunnel.originPrefix) { log.error("recover", ["text": $0]) }
    do throws(SystemError) {
      socket = try UnixSocket.listen(Self.socketPath, mode: 0o666)
    } catch {
      throw .system(error)
    }
  }

  /// Serves until the task is cancelled; then every tunnel is taken down and everything is put back.
  package func run() async {
    await withDiscardingTaskGroup { group in
      group.addTask { await self.followLinks() }
      while !Task.isCancelled {
        do { try await reactor.readable(socket.raw) } catch { break }
        guard let descriptor = UnixSocket.accept(socket) else {
          // Perhaps there is no descriptor left; the client waits.
          try? await Task.sleep(for: .milliseconds(50))
          continue
        }
        guard let connection = try? IPCConnection(descriptor, reactor), admit(connection.peer.user) else { continue }
        group.addTask {
          await self.serve(connection)
          await self.dismiss(connection.peer.user)
        }
      }
      group.cancelAll()
      await Task { await self.stopAll() }.value
    }
    unlink(Self.socketPath)
  }

  private func admit(_ user: UInt32) -> Bool {
    let ofUser = clients[user, default: 0]
    guard clients.values.reduce(0, +) < Self.mostClients, user == 0 || ofUser < Self.mostClientsOfAUser else {
      options.log.error("too_many_clients", ["user": "\(user)"])
      return false
    }
    clients[user] = ofUser + 1
    return true
  }

  private func dismiss(_ user: UInt32) {
    let left = clients[user, default: 1] - 1
    clients[user] = left == 0 ? nil : left
  }

  private func stopAll() async {
    await withDiscardingTaskGroup { group in
      for session in sessions.values {
        group.addTask {
          await session.stop(reason: 0)
          await session.dismiss(patiently: true)
        }
      }
    }
  }

  /// An interface may be taken away by others.
  private func followLinks() async {
    guard let monitor = try? NetworkMonitor() else { return }
    while let changes = try? await monitor.next(reactor) {
      guard changes.isEmpty || changes.contains(where: { $0.kind == .link }) else { continue }
      for session in sessions.values { await session.lookAtInterface() }
    }
  }

  // MARK: Sessions

  func session(_ key: Key) throws(IPCFailure) -> ProviderSession {
    if let session = sessions[key] { return session }
    guard let profile = profiles[key] else { throw IPCFailure(.unknown, "there is no profile \(key.id)") }
    let environment = ProviderSession.Environment(
      reactor: reactor, log: options.log, clock: options.clock, deadlines: options.deadlines,
      takeMark: { try await self.takeMark() }, giveBackMark: { await self.giveBack($0) })
    let made = ProviderSession(profile, environment)
    sessions[key] = made
    return made
  }

  // MARK: Marks

  /// Beyond those that full tunnels of `kape up` and wg-quick(8) look for.
  private static let firstMark: UInt32 = 52_820

  /// A number that is no table with routes and in no rule.
  private func takeMark() throws -> UInt32 {
    let netlink = try Netlink()
    let rules = try netlink.rules(.ipv4) + netlink.rules(.ipv6)
    var mark = Self.firstMark
    while true {
      let present = mark
      var isTaken = marks.contains(mark) || rules.contains { $0.mark == present || $0.table == present }
      for family in IPAddress.Family.allCases where !isTaken {
        isTaken = try netlink.hasRoutes(family, table: mark)
      }
      if !isTaken { break }
      mark += 1
    }
    marks.insert(mark)
    return mark
  }

  private func giveBack(_ mark: UInt32) { marks.remove(mark) }
}
