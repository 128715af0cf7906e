import Glibc
internal import KapeProtocols

/// What a provider may ask for. It is a program of a user's, and not to be believed anything.
extension ProviderSession {
  private static let mostPendingSettings = 8

  func answer(_ request: IPCRequest, from connection: IPCConnection) async {
    do {
      guard let tunnel, snapshot.status.isUp, provider?.connection === connection else {
        throw IPCFailure(.refused, "there is no tunnel")
      }
      switch request.operation {
      case "settings": try queueSettings(request, tunnel)
      case "socket": try await makeSocket(request, tunnel)
      case "reasserting":
        var fields = try request.fields
        let isReasserting = try fields.bool("value")
        try fields.end()
        setReasserting(isReasserting)
        await request.reply()
      case "cancel":
        var fields = try request.fields
        var reason: ProviderError?
        if var error = try fields.object("error") { reason = try ProviderError(&error) }
        try fields.end()
        events?.yield(.cancelled(reason))
        await request.reply()
      default: throw IPCFailure(.operation, "no such operation: \(request.operation)")
      }
    } catch let failure as IPCFailure {
      await request.refuse(failure)
    } catch {
      await request.refuse(IPCFailure(.malformed, "\(error)"))
    }
  }

  // MARK: Settings

  /// One after the other, in the order in which they came, while the connection goes on.
  private func queueSettings(_ request: IPCRequest, _ tunnel: HostedTunnel) throws {
    guard pendingSettings < Self.mostPendingSettings else { throw IPCFailure(.busy, "too many settings are pending") }
    var fields = try request.fields
    let wanted = try fields.value("settings").map { try TunnelSettings($0) }
    try fields.end()
    pendingSettings += 1
    let before = settingsTurn
    settingsTurn = Task {
      await before?.value
      await self.apply(wanted, request, tunnel)
    }
  }

  private func apply(_ wanted: TunnelSettings?, _ request: IPCRequest, _ tunnel: HostedTunnel) async {
    defer { pendingSettings -= 1 }
    do {
      guard self.tunnel === tunnel, snapshot.status.isUp else { throw IPCFailure(.refused, "there is no tunnel") }
      if let wanted {
        try await tunnel.network.apply(wanted)
        note("settings", "\(wanted.addresses.map(\.description).joined(separator: " ")) MTU \(wanted.mtu ?? 1500)")
      } else {
        try await tunnel.network.clear()
        note("settings", "none")
      }
      await request.reply()
    } catch let failure as IPCFailure {
      note("settings_refused", failure.message)
      await request.refuse(failure)
    } catch {
      await request.refuse(IPCFailure(.failed, "\(error)"))
    }
  }

  // MARK: Sockets

  /// Made here, marked here, and never anyone else's: what is outside the tunnel is a UDP or TCP socket of the provider's
  /// and nothing more.
  private func makeSocket(_ request: IPCRequest, _ tunnel: HostedTunnel) async throws {
    var fields = try request.fields
    let family = try fields.unsigned("family", limit: 6)
    let kind = try fields.string("kind", limit: 8)
    try fields.end()
    guard request.descriptors.count == 0 else {
      throw IPCFailure(.refused, "only sockets that kaped makes itself are outside the tunnel")
    }
    guard let family = IPAddress.Family(rawValue: UInt8(family)), let kind = OutsideSocket.Kind(rawValue: kind) else {
      throw IPCFailure(.refused, "a socket outside the tunnel is of family 4 or 6 and of kind udp or tcp")
    }
    let type = kind == .udp ? SOCK_DGRAM : SOCK_STREAM
    let flags = Int32(type.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
    let raw = socket(family == .ipv4 ? AF_INET : AF_INET6, flags, 0)
    guard raw >= 0 else { throw IPCFailure(.failed, "\(SystemError("socket"))") }
    let made = Descriptor(owning: raw)
    var mark = tunnel.network.mark
    guard setsockopt(made.raw, SOL_SOCKET, SO_MARK, &mark, socklen_t(MemoryLayout<UInt32>.size)) == 0 else {
      throw IPCFailure(.failed, "\(SystemError("setsockopt(SO_MARK)"))")
    }
    await request.reply(descriptors: [made.raw])
  }
}
