internal import Glibc
internal import KapeControl

/// What a provider that kaped has started asks it for, on the connection that it was given.
final class DaemonTunnelHost: TunnelHost {
  /// kaped answers sooner than its own deadlines let a provider wait; this is for a kaped that hangs.
  private static let patience: Duration = .seconds(10)

  let tun: HostedTun?
  private let connection: IPCConnection
  private let descriptor: Descriptor
  /// What is told without waiting, in its order.
  private let told: AsyncStream<(String, [JSONValue.Member])>.Continuation

  init(_ connection: IPCConnection, _ descriptor: consuming Descriptor, interface: String, mark: UInt32) {
    self.connection = connection
    tun = HostedTun(descriptor: descriptor.raw, name: interface, mark: mark)
    self.descriptor = descriptor
    let (stream, continuation) = AsyncStream.makeStream(of: (String, [JSONValue.Member]).self)
    told = continuation
    Task {
      for await (operation, body) in stream {
        _ = try? await connection.ask(operation, body, within: Self.patience)
      }
    }
  }

  deinit { told.finish() }

  func apply(_ settings: TunnelSettings?) async throws {
    do {
      _ = try await connection.ask("settings", [.init("settings", settings?.json ?? .null)], within: Self.patience)
    } catch let failure as IPCFailure {
      let isInvalid = [.invalid, .refused, .malformed].contains(failure.code)
      throw NETunnelProviderError(isInvalid ? .networkSettingsInvalid : .networkSettingsFailed, failure.message)
    }
  }

  func makeSocket(_ wanted: OutsideSocket) async throws -> Int32 {
    let reply = try await connection.ask(
      "socket",
      [.init("family", .unsigned(UInt64(wanted.family.rawValue))), .init("kind", .string(wanted.kind.rawValue))],
      within: Self.patience)
    guard reply.descriptors.count == 1, let made = reply.descriptors.take().first else {
      throw IPCFailure(.failed, "kaped has sent no socket")
    }
    return made
  }

  func setReasserting(_ isReasserting: Bool) {
    told.yield(("reasserting", [.init("value", .bool(isReasserting))]))
  }

  func cancel(_ error: (any Error)?) {
    told.yield(("cancel", [.init("error", error.map { ProviderError($0).json } ?? .null)]))
  }
}
