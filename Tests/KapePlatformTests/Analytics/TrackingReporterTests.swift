import Foundation
import KapeTestSupport
import Synchronization
import Testing

@testable import KapePlatform

/// §6.6: the ready-made reporter.
@Suite struct TrackingReporterTests {
  private let ids = (
    session: UUID(uuidString: "00000000-0000-0000-0000-000000000001") ?? UUID(),
    connection: UUID(uuidString: "00000000-0000-0000-0000-000000000002") ?? UUID(),
    attempt: UUID(uuidString: "00000000-0000-0000-0000-000000000003") ?? UUID()
  )

  private struct Configuration: VpnConfiguration {
    let vpnProtocolName = "wireguard"
    let obfuscationDescription = "amnezia"
  }

  private func reportAll(_ reporter: KapeClientVpnConnectionAnalytics) {
    reporter.sessionDidBegin(
      VpnAnalyticsSessionBeginEvent(
        sessionId: ids.session, connectSource: .startup, selectedProtocol: "wireguard",
        selectedLocationDescription: "Here"))
    reporter.connectionDidBegin(
      VpnAnalyticsConnectionBeginEvent(sessionId: ids.session, connectionId: ids.connection, reason: .initial))
    reporter.attemptDidBegin(
      VpnAnalyticsAttemptBeginEvent(
        sessionId: ids.session, connectionId: ids.connection, attemptId: ids.attempt, configuration: Configuration()))
    reporter.attemptDidEnd(
      VpnAnalyticsAttemptEndEvent(attemptId: ids.attempt, result: .failed(.connectTimeout), elapsedMs: 7))
    reporter.attemptDidEnd(
      VpnAnalyticsAttemptEndEvent(
        attemptId: ids.attempt, result: .connected, elapsedMs: 8,
        endpoint: PacketTunnelConnectedEndpoint(host: "192.0.2.1", protocolDescription: "WireGuard")))
    reporter.connectionDidEnd(
      VpnAnalyticsConnectionEndEvent(
        sessionId: ids.session, connectionId: ids.connection, reason: .userInitiated, effectiveProtocol: "wireguard",
        effectiveObfuscation: "none", durationMs: 9, wasConnected: true))
    reporter.sessionDidEnd(
      VpnAnalyticsSessionEndEvent(
        sessionId: ids.session, reason: .userInitiated, durationMs: 10, wasEverConnected: true))
  }

  @Test func reporter_onlySendsInOrderAsQualityMetrics() async throws {
    let tracking = RecordingTracking()
    let reporter = KapeClientVpnConnectionAnalytics(
      tracking: tracking,
      logger: KapeLogger(subsystem: "t", category: "t") { level, line in
        tracking.log.add("\(level) \(line)")
      })
    reportAll(reporter)
    await reporter.flush()
    await reporter.reset()
    let (session, connection, attempt) = (ids.session.uuidString, ids.connection.uuidString, ids.attempt.uuidString)
    let events: [(String, [String: String])] = [
      (
        "vpn_session_begin",
        [
          "session_id": session, "connect_source": "startup", "selected_protocol": "wireguard",
          "selected_location": "Here",
        ]
      ),
      (
        "vpn_connection_begin",
        ["session_id": session, "connection_id": connection, "reason": "initial", "selected_protocol": "automatic"]
      ),
      (
        "vpn_attempt_begin",
        [
          "session_id": session, "connection_id": connection, "attempt_id": attempt, "protocol": "wireguard",
          "obfuscation": "amnezia", "cipher": "none", "is_proxied": "false", "selected_protocol": "automatic",
        ]
      ),
      (
        "vpn_attempt_end",
        [
          "attempt_id": attempt, "elapsed_ms": "7", "result": "failed",
          "error": loggable(PacketTunnelError.connectTimeout),
          "selected_protocol": "automatic",
        ]
      ),
      (
        "vpn_attempt_end",
        [
          "attempt_id": attempt, "elapsed_ms": "8", "result": "connected", "endpoint_host": "192.0.2.1",
          "endpoint_protocol": "WireGuard", "selected_protocol": "automatic",
        ]
      ),
      (
        "vpn_connection_end",
        [
          "session_id": session, "connection_id": connection, "reason": "userInitiated", "duration_ms": "9",
          "was_connected": "true", "effective_protocol": "wireguard", "effective_obfuscation": "none",
          "selected_protocol": "automatic",
        ]
      ),
      (
        "vpn_session_end",
        [
          "session_id": session, "reason": "userInitiated", "duration_ms": "10", "was_ever_connected": "true",
          "connect_source": "manual", "selected_protocol": "automatic",
        ]
      ),
    ]
    // The log's line is before each event; addresses of the public are left out of it, not of the event.
    let expected = events.flatMap { name, properties in
      let json = VpnAnalyticsProperties.json(properties).replacingOccurrences(of: "192.0.2.1", with: "<redacted>")
      return [
        "debug [tracking] \(name) \(json)", "track \(name) \(properties.sorted { $0.key < $1.key }) qualityMetrics",
      ]
    }
    #expect(tracking.log.all == expected + ["flush", "reset"])
  }

  @Test func reporter_flushAndResetComeAfterWhatWasReportedBefore() async {
    let tracking = RecordingTracking(isSlow: true)
    let reporter = KapeClientVpnConnectionAnalytics(
      tracking: tracking, logger: KapeLogger(subsystem: "t", category: "t") { _, _ in })
    reporter.sessionDidBegin(VpnAnalyticsSessionBeginEvent(sessionId: ids.session))
    let reset = Task { await reporter.reset() }
    // Once it is in the queue, what is reported is the next user's.
    await tracking.began.wait()
    while tracking.log.all.isEmpty { await Task.yield() }
    tracking.letGo()
    await reset.value
    reporter.sessionDidEnd(VpnAnalyticsSessionEndEvent(sessionId: ids.session, reason: .userInitiated))
    await reporter.flush()
    #expect(
      tracking.log.all.map { $0.prefix(22) }
        == ["track vpn_session_begin", "reset", "track vpn_session_end ", "flush"].map { $0.prefix(22) })
  }

  @Test func reporter_callbacksReturnWhileTheCollectorHangs() async {
    let tracking = RecordingTracking(isSlow: true)
    let reporter = KapeClientVpnConnectionAnalytics(
      tracking: tracking, logger: KapeLogger(subsystem: "t", category: "t") { _, _ in })
    for _ in 0..<10_000 { reportAll(reporter) }
    // More than it keeps was reported: what waits for the end of it is not left waiting.
    await reporter.flush()
    tracking.letGo()
    #expect(tracking.log.all.count < 5000)
  }

  @Test func reporter_whatWasReportedIsSentWhenItIsGone() async {
    let tracking = RecordingTracking()
    var reporter: KapeClientVpnConnectionAnalytics? = KapeClientVpnConnectionAnalytics(
      tracking: tracking, logger: KapeLogger(subsystem: "t", category: "t") { _, _ in })
    if let reporter { reportAll(reporter) }
    reporter = nil
    while tracking.log.all.count < 7 { await Task.yield() }
    #expect(tracking.log.all.last?.hasPrefix("track vpn_session_end") == true)
  }

  @Test func reporter_nothingLeavesTheMachineUnlessTheUserOptsIn() async throws {
    let collector = try await Collector()
    let client = TrackingClient(
      url: collector.url, http: KapeHTTPClient(allowsPlainHTTP: true), identity: TrackingIdentity(path: nil),
      clock: TestClock())
    let reporter = KapeClientVpnConnectionAnalytics(
      tracking: client, logger: KapeLogger(subsystem: "t", category: "t") { _, _ in })
    await client.initializeAsync(config: .test)
    reportAll(reporter)
    await reporter.flush()
    #expect(collector.batches.isEmpty)
    await client.optInTrackingAsync()
    reportAll(reporter)
    await reporter.flush()
    let names = try await collector.names(1)
    #expect(names.count == 1 && names.first?.count == 7 && names.first?.first == "vpn_session_begin")
  }
}

/// Takes down what it is told.
private final class RecordingTracking: TrackingProtocol {
  let log = TrackingClientTests.Lines()
  let began = Gate()
  private let gate = Gate()
  private let isSlow: Bool

  init(isSlow: Bool = false) { self.isSlow = isSlow }

  func letGo() { gate.open() }

  func initializeAsync(config: MixpanelConfiguration) async { log.add("initialize") }
  func optInTrackingAsync() async { log.add("opt in") }
  func optOutTrackingAsync() async { log.add("opt out") }
  func trackAsync(event: String, properties: [String: String], category: EventCategory) async {
    log.add("track \(event) \(properties.sorted { $0.key < $1.key }) \(category.rawValue)")
    began.open()
    if isSlow { await gate.wait() }
  }
  func flushAsync() async { log.add("flush") }
  func resetAsync() async { log.add("reset") }
}

/// Lets tasks through once it is open.
private final class Gate: Sendable {
  private let state = Mutex<(isOpen: Bool, waiting: [CheckedContinuation<Void, Never>])>((false, []))

  func open() {
    let waiting = state.withLock { state in
      defer { state = (true, []) }
      return state.waiting
    }
    for continuation in waiting { continuation.resume() }
  }

  func wait() async {
    await withCheckedContinuation { continuation in
      let isOpen = state.withLock { state in
        if !state.isOpen { state.waiting.append(continuation) }
        return state.isOpen
      }
      if isOpen { continuation.resume() }
    }
  }
}
