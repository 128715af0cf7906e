// Imports nothing but what a provider of one's own imports.
import KapeVPN_PacketTunnel
import Testing

private struct Endpoint: VpnConfiguration { let vpnProtocolName = "wireguard" }

private struct Generator: VpnConfigurationGenerator {
  func nextConfiguration() async throws -> (any VpnConfiguration)? { Endpoint() }
}

private actor Controller: ConnectionController {
  private var run: CheckedContinuation<PacketTunnelError?, Never>?
  private var reporter: (any AttemptReporter)?
  private(set) var connections = 0
  private var isUp = false

  func setAttemptReporter(_ reporter: (any AttemptReporter)?) { self.reporter = reporter }

  func connect(_ configuration: Endpoint) async throws {
    connections += 1
    isUp = true
    guard let attempt = reporter?.attemptDidBegin(configuration: configuration) else { return }
    reporter?.attemptDidEnd(
      attempt, result: .connected, endpoint: .init(host: "192.0.2.1", protocolDescription: "WireGuard"))
  }

  func runVPN() async -> PacketTunnelError? {
    // A stop may come before this does.
    guard isUp else { return nil }
    return await withCheckedContinuation { run = $0 }
  }

  func stop() {
    isUp = false
    run?.resume(returning: nil)
    run = nil
  }

  func currentDataUsage() -> PacketTunnelDataUsage? { PacketTunnelDataUsage(bytesReceived: 1, bytesSent: 2) }
}

private struct Logger: PacketTunnelLogger {
  func trace(_ message: @autoclosure () -> String) {}
  func debug(_ message: @autoclosure () -> String) {}
  func info(_ message: @autoclosure () -> String) {}
  func warning(_ message: @autoclosure () -> String) {}
  func error(_ message: @autoclosure () -> String) {}
}

@Suite struct SessionFacadeTests {
  @Test("A session by the factory, in real time, from start to stop")
  func session() async throws {
    let controller = Controller()
    let session = await SessionControllerFactory.make(
      configurationGenerator: Generator(), connectionControllers: [controller], appGroupIdentifier: "group.test",
      loggerFactory: { _ in Logger() })
    #expect(await session.currentDataUsage() == nil)
    try await session.start()
    #expect(await session.currentDataUsage()?.bytesSent == 2)
    try await session.switchLocation()
    await session.reconnect()
    try await session.switchLocation()
    await session.pause(for: .seconds(60))
    await session.resumeIfDue()
    await session.resume()
    await session.stop()
    #expect(await controller.connections >= 3)
    while await PacketTunnelState.shared.tunnelStatus != .disconnected { await Task.yield() }
    #expect(await PacketTunnelState.shared.lastError == nil)
  }
}
