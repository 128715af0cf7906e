internal import Glibc
internal import KapeControl

/// The process of a tunnel provider.
public enum KapeTunnelHost {
  private static let explanation = """
    %: a tunnel provider. kaped starts it, as the user whose app has installed its profile, when that app starts the \
    tunnel; started by hand it has no tunnel to serve and does nothing.
      An app installs the profile with KapeVPNManager.installProfile() or \
    NETunnelProviderManager.saveToPreferences(); 'kape daemon --help' tells of kaped.

    """

  /// The whole of a provider's `main.swift`: `KapeTunnelHost.run(PacketTunnelProvider.self)`. Serves one tunnel after the
  /// other, each with a new instance made by `init()`, until kaped has no use for the process any more. Started by hand
  /// it explains itself and exits with status 2.
  public static func run<Provider: NEPacketTunnelProvider>(_ provider: Provider.Type) -> Never {
    signal(SIGPIPE, SIG_IGN)
    guard variable("KAPE_STARTED_BY") == "kaped" else { explain() }
    Task.detached {
      let reactor: Reactor
      let connection: IPCConnection
      do {
        reactor = try Reactor()
        connection = try await attach(reactor)
      } catch {
        say("\(name): \(error)\n")
        explain()
      }
      await ProviderHost(connection) { makeProvider(provider) }.run()
      exit(0)
    }
    dispatchMain()
  }

  /// Asks kaped for this process's own connection.
  private static func attach(_ reactor: Reactor) async throws -> IPCConnection {
    let connection = try IPCConnection.connect(Daemon.socketPath, reactor)
    let reading = Task { await connection.run { await $0.refuse(IPCFailure(.operation, "nothing is answered here")) } }
    defer {
      connection.close()
      reading.cancel()
    }
    let reply = try await connection.ask("attach", within: .seconds(10))
    guard let descriptor = reply.descriptors.take().first else { throw IPCFailure(.failed, "kaped has sent nothing") }
    return try IPCConnection(Descriptor(owning: descriptor), reactor)
  }

  private static var name: String {
    let path = CommandLine.arguments.first ?? ""
    return path.split(separator: "/").last.map(String.init) ?? "provider"
  }

  private static func explain() -> Never {
    say(explanation.replacing("%", with: name, maxReplacements: 1))
    exit(2)
  }

  private static func say(_ text: String) {
    var text = text
    text.withUTF8 { _ = write(STDERR_FILENO, $0.baseAddress, $0.count) }
  }
}
