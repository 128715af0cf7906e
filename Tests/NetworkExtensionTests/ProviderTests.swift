import NetworkExtension
import Synchronization
import Testing

private final class WaitingProvider: NEPacketTunnelProvider, @unchecked Sendable {
  let calls = Mutex<[String]>([])
  struct Refused: Error {}

  override func startTunnel(options: [String: NSObject]? = nil) async throws {
    calls.withLock { $0.append("start \(options?["location"] ?? "-" as NSObject)") }
    if options?["refuse"] != nil { throw Refused() }
  }
  override func stopTunnel(with reason: NEProviderStopReason) async {
    calls.withLock { $0.append("stop \(reason)") }
  }
}

private final class CallingProvider: NEPacketTunnelProvider, @unchecked Sendable {
  let calls = Mutex<[String]>([])

  // As files for the platform have it: neither handler is @Sendable there.
  override func startTunnel(options: [String: NSObject]?, completionHandler: @escaping ((any Error)?) -> Void) {
    calls.withLock { $0.append("start") }
    super.startTunnel(options: options) { error in
      self.calls.withLock { $0.append("base \(error == nil)") }
    }
    completionHandler(nil)
  }
  override func stopTunnel(with reason: NEProviderStopReason, completionHandler: @escaping () -> Void) {
    calls.withLock { $0.append("stop") }
    completionHandler()
  }
  override func handleAppMessage(_ messageData: Data, completionHandler: ((Data?) -> Void)?) {
    completionHandler?(messageData)
  }
}

@Suite struct ProviderTests {
  @Test func aSubclassMayOverrideTheFormThatWaits() async {
    let provider = WaitingProvider()
    let error = await withCheckedContinuation { continuation in
      provider.startTunnel(options: ["location": "one" as NSString]) { continuation.resume(returning: $0 == nil) }
    }
    #expect(error)
    let failure = await withCheckedContinuation { continuation in
      provider.startTunnel(options: ["refuse": NSNull()]) {
        continuation.resume(returning: $0 is WaitingProvider.Refused)
      }
    }
    #expect(failure)
    await withCheckedContinuation { continuation in
      provider.stopTunnel(with: .userInitiated) { continuation.resume() }
    }
    #expect(provider.calls.withLock { $0 } == ["start one", "start -", "stop userInitiated"])
  }

  @Test func aSubclassMayOverrideTheFormThatCalls() async {
    let provider = CallingProvider()
    await withCheckedContinuation { continuation in
      provider.startTunnel(options: nil) { _ in continuation.resume() }
    }
    await withCheckedContinuation { continuation in
      provider.stopTunnel(with: .sleep) { continuation.resume() }
    }
    let answer = await withCheckedContinuation { continuation in
      provider.handleAppMessage(Data([1, 2])) { continuation.resume(returning: $0) }
    }
    #expect(answer == Data([1, 2]))
    while provider.calls.withLock({ !$0.contains("base true") }) { await Task.yield() }
    #expect(provider.calls.withLock { $0.filter { !$0.hasPrefix("base") } } == ["start", "stop"])
  }

  @Test func theBaseAnswersAtOnce() async {
    let provider = NEPacketTunnelProvider()
    let answer = await withCheckedContinuation { continuation in
      provider.handleAppMessage(Data()) { continuation.resume(returning: $0) }
    }
    #expect(answer == nil)
    await withCheckedContinuation { continuation in provider.sleep { continuation.resume() } }
    provider.wake()
  }

  @Test func reassertingIsToldOnceAChange() {
    let provider = NEPacketTunnelProvider()
    let host = RecordingHost()
    provider.host = host
    provider.reasserting = true
    provider.reasserting = true
    provider.reasserting = false
    #expect(host.seen.reasserting == [true, false])
    #expect(!provider.reasserting)
  }

  @Test func settingsGoToTheHostAndSoDoesTheirAbsence() async throws {
    let provider = NEPacketTunnelProvider()
    let host = RecordingHost()
    provider.host = host
    let settings = NEPacketTunnelNetworkSettings(tunnelRemoteAddress: "192.0.2.1")
    settings.ipv4Settings = NEIPv4Settings(addresses: ["10.77.0.2"], subnetMasks: ["255.255.255.0"])
    try await provider.setTunnelNetworkSettings(settings)
    try await provider.setTunnelNetworkSettings(nil)
    #expect(host.seen.applied == [try settings.tunnelSettings(), nil])
  }

  @Test func badSettingsDoNotReachTheHost() async throws {
    let provider = NEPacketTunnelProvider()
    let host = RecordingHost()
    provider.host = host
    let settings = NEPacketTunnelNetworkSettings(tunnelRemoteAddress: "192.0.2.1")
    settings.ipv4Settings = NEIPv4Settings(addresses: ["10.77"], subnetMasks: ["255.255.255.0"])
    await #expect(throws: NETunnelProviderError.self) { try await provider.setTunnelNetworkSettings(settings) }
    #expect(host.seen.applied.isEmpty)
  }

  @Test func aSystemThatNeverAnswersIsGivenUpAfterTenSeconds() async {
    let provider = NEPacketTunnelProvider()
    let clock = ManualClock()
    provider.host = RecordingHost(never: true)
    provider.clock = clock
    let outcome = Task { () -> String in
      do {
        try await provider.setTunnelNetworkSettings(nil)
        return "done"
      } catch {
        return "\(error)"
      }
    }
    await clock.hasSleeper()
    clock.advance(by: .milliseconds(9_999))
    #expect(clock.sleepers == 1, "not yet")
    clock.advance(by: .milliseconds(1))
    #expect(await outcome.value.contains("did not answer within 10.0 seconds"))
  }

  @Test func withoutAHostEverythingFailsAndNothingHangs() async {
    let provider = NEPacketTunnelProvider()
    await #expect(throws: NETunnelProviderError.self) { try await provider.setTunnelNetworkSettings(nil) }
    await #expect(throws: NETunnelProviderError.self) {
      try await provider.makeSocketOutsideTunnel(family: AF_INET, type: Int32(SOCK_DGRAM.rawValue))
    }
    #expect(!provider.packetFlow.writePackets([Data([0x45])], withProtocols: [2]))
    #expect(await provider.packetFlow.readPackets().0.isEmpty)
    provider.cancelTunnelWithError(nil)
  }

  @Test func socketsOfOtherKindsAreNotAskedFor() async throws {
    let provider = NEPacketTunnelProvider()
    let host = RecordingHost()
    provider.host = host
    #expect(try await provider.makeSocketOutsideTunnel(family: AF_INET6, type: Int32(SOCK_STREAM.rawValue)) == 7)
    for (family, type) in [(AF_INET, SOCK_RAW), (AF_PACKET, SOCK_DGRAM), (AF_UNIX, SOCK_STREAM)] {
      await #expect(throws: POSIXError.self) {
        try await provider.makeSocketOutsideTunnel(family: family, type: Int32(type.rawValue))
      }
    }
    #expect(host.seen.sockets == [.init(.ipv6, .tcp)])
  }
}
