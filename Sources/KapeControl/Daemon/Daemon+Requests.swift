import Glibc

/// What anybody on the machine may ask, each for his own profiles; root for everybody's.
extension Daemon {
  func serve(_ connection: IPCConnection) async {
    let client = DaemonClient(connection)
    await withTaskCancellationHandler {
      await connection.run { request in await self.answer(request, client) }
    } onCancel: {
      connection.close()
    }
    await client.end()
  }

  private func answer(_ request: IPCRequest, _ client: DaemonClient) async {
    guard await client.begin() else {
      await request.refuse(IPCFailure(.busy, "too much is asked at once"))
      return
    }
    // Some take as long as a provider does; whoever asked may ask other things meanwhile.
    Task {
      do {
        try await self.answerNow(request, client)
      } catch let failure as IPCFailure {
        await request.refuse(failure)
      } catch let fault as JSONFields.Fault {
        await request.refuse(IPCFailure(.malformed, fault.description))
      } catch {
        await request.refuse(IPCFailure(.failed, "\(error)"))
      }
      await client.finish()
    }
  }

  private func answerNow(_ request: IPCRequest, _ client: DaemonClient) async throws {
    var fields = try request.fields
    let peer = client.connection.peer
    switch request.operation {
    case "hello":
      try fields.end()
      await request.reply(
        .object([.init("versions", .array([.unsigned(IPCMessage.version)])), .init("uid", .number(peer.user))]))
    case "attach": try await attach(request, fields, peer)
    case "profile.install": try await install(request, fields, peer)
    case "profile.list":
      let user = try self.user(&fields, peer)
      try fields.end()
      let found = profiles.values.filter { $0.user == user }.sorted { $0.id < $1.id }
      await request.reply(.object([.init("profiles", .array(found.map(\.json)))]))
    case "profile.remove": try await remove(request, fields, peer)
    case "tunnel.start": try await start(request, fields, peer)
    case "tunnel.stop":
      let key = try self.key(&fields, peer)
      try fields.end()
      guard profiles[key] != nil else { throw IPCFailure(.unknown, "there is no profile \(key.id)") }
      await sessions[key]?.stop(reason: Self.userInitiated)
      await request.reply()
    case "tunnel.message":
      let key = try self.key(&fields, peer)
      let data = try fields.data("data", limit: IPCFrame.largest) ?? []
      try fields.end()
      let answer = try await session(key).message(data)
      await request.reply(.object([.init("data", .optional(answer.map { Base64.encode($0) }))]))
    case "tunnel.status":
      let key = try self.key(&fields, peer)
      try fields.end()
      await request.reply(try await session(key).snapshot.json)
    case "tunnel.output":
      let key = try self.key(&fields, peer)
      try fields.end()
      await request.reply(.object([.init("lines", .strings(try await session(key).outputLines))]))
    case "tunnel.watch":
      let key = try self.key(&fields, peer)
      try fields.end()
      try await client.watch(try session(key))
      await request.reply()
    default: throw IPCFailure(.operation, "no such operation: \(request.operation)")
    }
  }

  /// NEProviderStopReason.
  private static let userInitiated: UInt64 = 1
  private static let superseded: UInt64 = 11

  // MARK: Whose

  /// The caller's, or the one that root names.
  private func user(_ fields: inout JSONFields, _ peer: PeerCredentials) throws -> UInt32 {
    let wanted = try fields.optionalUnsigned("uid", limit: UInt64(UInt32.max - 1)).map { UInt32($0) } ?? peer.user
    guard wanted == peer.user || peer.user == 0 else {
      throw IPCFailure(.refused, "only root acts for another user than itself")
    }
    return wanted
  }

  private func key(_ fields: inout JSONFields, _ peer: PeerCredentials) throws -> Key {
    let user = try self.user(&fields, peer)
    return Key(user: user, id: try fields.string("profile", limit: 64))
  }

  // MARK: Profiles

  private func install(_ request: IPCRequest, _ given: JSONFields, _ peer: PeerCredentials) async throws {
    var fields = given
    let user = try self.user(&fields, peer)
    let wanted = try ProviderProfile.Wanted(&fields, id: "profile")
    let path = try fields.string("executable", limit: Int(PATH_MAX))
    try fields.end()
    let key = Key(user: user, id: wanted.id)
    guard profiles[key] != nil || profiles.keys.count(where: { $0.user == user }) < ProfileStore.mostOfAUser else {
      throw IPCFailure(.refused, "user \(user) has \(ProfileStore.mostOfAUser) profiles already; remove one first")
    }
    let group = user == peer.user ? peer.group : Self.nobodysGroup
    guard measuring.insert(user).inserted else { throw IPCFailure(.busy, "another profile is being installed") }
    defer { measuring.remove(user) }
    let record = try await measure(path, user, group)
    let profile = ProviderProfile(
      id: wanted.id, user: user, group: group, name: wanted.name, executable: record, arguments: wanted.arguments,
      appGroup: wanted.appGroup, stateHome: wanted.stateHome, isEnabled: wanted.isEnabled,
      configuration: wanted.configuration)
    try store.save(profile)
    profiles[key] = profile
    await sessions[key]?.replace(profile)
    options.log.verbose("profile_installed", ["user": "\(user)", "id": profile.id, "executable": path])
    await request.reply(profile.json)
  }

  /// nogroup, for a user without an account on whose behalf root installs.
  private static let nobodysGroup: UInt32 = 65_534

  /// By a process with the user's rights and no others: what he cannot read and execute he cannot have started.
  private func measure(_ path: String, _ user: UInt32, _ group: UInt32) async throws -> ExecutableRecord {
    let account = try await UserAccount.find(user, fallbackGroup: group)
    let process = try ProviderProcess(reactor)
    defer {
      process.signal(SIGKILL)
      Task { await process.ending }
    }
    return try await within(options.deadlines.launch, of: options.clock, "the file") {
      try await process.measured(LaunchRequest(account, .measure(path: path)))
    }
  }

  private func remove(_ request: IPCRequest, _ given: JSONFields, _ peer: PeerCredentials) async throws {
    var fields = given
    let key = try self.key(&fields, peer)
    try fields.end()
    guard profiles[key] != nil else { throw IPCFailure(.unknown, "there is no profile \(key.id)") }
    _ = try store.remove(key.id, of: key.user)
    profiles[key] = nil
    if let session = sessions.removeValue(forKey: key) {
      await session.stop(reason: Self.configurationRemoved)
      await session.dismiss(patiently: true)
    }
    await request.reply()
  }

  private static let configurationRemoved: UInt64 = 10

  // MARK: Tunnels

  private func start(_ request: IPCRequest, _ given: JSONFields, _ peer: PeerCredentials) async throws {
    var fields = given
    let key = try self.key(&fields, peer)
    let options = try fields.data("options", limit: ProviderProfile.mostConfiguration) ?? []
    try fields.end()
    try await starting.withLock {
      let session = try session(key)
      for (other, running) in sessions where other != key {
        let interface = await running.snapshot.interface
        guard await running.life != nil else { continue }
        guard other.user == key.user else {
          throw IPCFailure(.busy, "user \(other.user) has a tunnel already (\(interface ?? "starting"))")
        }
        await running.stop(reason: Self.superseded)
      }
      try await session.start(options: options)
    }
    await request.reply()
  }

  /// A provider that kaped has started gets its own connection, on which it is spoken to from now on.
  private func attach(_ request: IPCRequest, _ given: JSONFields, _ peer: PeerCredentials) async throws {
    try given.end()
    for (key, session) in sessions where key.user == peer.user {
      guard await session.isAwaiting(peer.process) else { continue }
      let pair = try UnixSocket.pair()
      let theirs = fcntl(pair.second.raw, F_DUPFD_CLOEXEC, 0)
      let ours = fcntl(pair.first.raw, F_DUPFD_CLOEXEC, 0)
      guard theirs >= 0, ours >= 0 else { throw SystemError("fcntl") }
      let given = Descriptor(owning: theirs)
      let connection = try IPCConnection(Descriptor(owning: ours), reactor)
      await request.reply(
        .object([.init("profile", .string(key.id))]), descriptors: [given.raw])
      await session.attach(connection)
      return
    }
    throw IPCFailure(.refused, "kaped has not started this process")
  }
}
