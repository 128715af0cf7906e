package import Foundation
import Synchronization

/// Makes the events of a session, in the order of what happens, and hands them to the reporter on a queue of their own:
/// one that takes its time holds up nobody. The log has the same trail, whatever the reporter.
package final class SessionAnalytics: AttemptReporter {
  private let reporter: any VpnConnectionAnalytics
  private let logger: any PacketTunnelLogger
  private let environment: SessionEnvironment
  private let state = Mutex(State())

  private struct State {
    var selection = SessionSelection()
    var session: Span?
    var connection: Span?
    /// What the open connection is up by.
    var effective: (any VpnConfiguration)?
    /// What the last attempt connected to, until the session has heard of it by the controller too.
    var connected: (configuration: any VpnConfiguration, endpoint: PacketTunnelConnectedEndpoint?)?
    var attempts: [UUID: Attempt] = [:]
  }

  private struct Span {
    let id = UUID()
    let began: Duration
    var wasConnected = false
  }

  private struct Attempt {
    let began: Duration
    let configuration: any VpnConfiguration
  }

  init(_ reporter: any VpnConnectionAnalytics, logger: any PacketTunnelLogger, environment: SessionEnvironment) {
    self.reporter = reporter
    self.logger = logger
    self.environment = environment
  }

  // MARK: Session

  func sessionDidBegin(_ selection: SessionSelection) {
    state.withLock { state in
      state.selection = selection
      let session = Span(began: environment.clock.now)
      state.session = session
      let event = VpnAnalyticsSessionBeginEvent(
        sessionId: session.id, connectSource: selection.connectSource, selectedProtocol: selection.selectedProtocol,
        selectedLocationDescription: selection.selectedLocationDescription)
      tell("session begin \(selection.connectSource) \(selection)") { $0.sessionDidBegin(event) }
    }
  }

  /// Events from now on carry it.
  func select(_ selection: SessionSelection) {
    state.withLock { $0.selection = selection }
  }

  func sessionDidEnd(_ reason: PacketTunnelSessionDisconnectReason) {
    state.withLock { state in
      guard let session = state.session else { return }
      state.session = nil
      let event = VpnAnalyticsSessionEndEvent(
        sessionId: session.id, reason: reason, durationMs: milliseconds(since: session.began),
        wasEverConnected: session.wasConnected, connectSource: state.selection.connectSource,
        selectedProtocol: state.selection.selectedProtocol,
        selectedLocationDescription: state.selection.selectedLocationDescription)
      tell("session end \(reason)") { $0.sessionDidEnd(event) }
    }
  }

  // MARK: Connection

  func connectionDidBegin(_ reason: PacketTunnelConnectReason) {
    state.withLock { begin(&$0, reason) }
  }

  private func begin(_ state: inout State, _ reason: PacketTunnelConnectReason) {
    guard let session = state.session else { return }
    let connection = Span(began: environment.clock.now)
    state.connection = connection
    state.effective = nil
    let event = VpnAnalyticsConnectionBeginEvent(
      sessionId: session.id, connectionId: connection.id, reason: reason,
      selectedProtocol: state.selection.selectedProtocol,
      selectedLocationDescription: state.selection.selectedLocationDescription)
    tell("connection begin \(reason)") { $0.connectionDidBegin(event) }
  }

  /// Without an open connection, nothing.
  func connectionDidEnd(_ reason: PacketTunnelConnectionDisconnectReason) {
    state.withLock { end(&$0, reason) }
  }

  private func end(_ state: inout State, _ reason: PacketTunnelConnectionDisconnectReason) {
    guard let session = state.session, let connection = state.connection else { return }
    let effective = state.effective
    state.connection = nil
    state.effective = nil
    let event = VpnAnalyticsConnectionEndEvent(
      sessionId: session.id, connectionId: connection.id, reason: reason,
      effectiveProtocol: effective?.vpnProtocolName, effectiveObfuscation: effective?.obfuscationDescription,
      durationMs: milliseconds(since: connection.began), wasConnected: connection.wasConnected,
      selectedProtocol: state.selection.selectedProtocol,
      selectedLocationDescription: state.selection.selectedLocationDescription)
    tell("connection end \(reason) by \(effective?.vpnProtocolName ?? "nothing")") { $0.connectionDidEnd(event) }
  }

  /// One ends and the next begins, with nothing between them.
  func connectionDidRestart(
    _ endReason: PacketTunnelConnectionDisconnectReason, _ beginReason: PacketTunnelConnectReason,
    selection: SessionSelection? = nil
  ) {
    state.withLock { state in
      end(&state, endReason)
      if let selection { state.selection = selection }
      begin(&state, beginReason)
    }
  }

  /// A controller is asked to connect.
  func connectionWillConnect() {
    state.withLock { $0.connected = nil }
  }

  /// It is up by `configuration`, or by that of the attempt that said so. Gives what the attempt connected to.
  func connectionDidConnect(_ configuration: any VpnConfiguration) -> PacketTunnelConnectedEndpoint? {
    state.withLock { state in
      state.session?.wasConnected = true
      state.connection?.wasConnected = true
      state.effective = state.connected?.configuration ?? configuration
      defer { state.connected = nil }
      return state.connected?.endpoint
    }
  }

  // MARK: Attempts

  package func attemptDidBegin(configuration: any VpnConfiguration) -> UUID {
    state.withLock { state in
      let id = UUID()
      state.attempts[id] = Attempt(began: environment.clock.now, configuration: configuration)
      beginAttempt(state, id, configuration)
      return id
    }
  }

  package func attemptDidEnd(_ id: UUID, result: PacketTunnelAttemptResult, endpoint: PacketTunnelConnectedEndpoint?) {
    state.withLock { state in
      guard let attempt = state.attempts.removeValue(forKey: id) else { return }
      endAttempt(
        &state, id, attempt.configuration, result, milliseconds(since: attempt.began), endpoint)
    }
  }

  package func attemptDidHappen(
    configuration: any VpnConfiguration, result: PacketTunnelAttemptResult, elapsed: Duration,
    endpoint: PacketTunnelConnectedEndpoint?
  ) {
    state.withLock { state in
      let id = UUID()
      beginAttempt(state, id, configuration)
      endAttempt(&state, id, configuration, result, elapsed.milliseconds, endpoint)
    }
  }

  private func beginAttempt(_ state: State, _ id: UUID, _ configuration: any VpnConfiguration) {
    guard let session = state.session, let connection = state.connection else { return }
    let event = VpnAnalyticsAttemptBeginEvent(
      sessionId: session.id, connectionId: connection.id, attemptId: id, configuration: configuration,
      selectedProtocol: state.selection.selectedProtocol,
      selectedLocationDescription: state.selection.selectedLocationDescription)
    tell("attempt begin \(configuration.vpnProtocolName), obfuscation \(configuration.obfuscationDescription)") {
      $0.attemptDidBegin(event)
    }
  }

  private func endAttempt(
    _ state: inout State, _ id: UUID, _ configuration: any VpnConfiguration, _ result: PacketTunnelAttemptResult,
    _ elapsedMs: Int, _ endpoint: PacketTunnelConnectedEndpoint?
  ) {
    if result == .connected { state.connected = (configuration, endpoint) }
    let event = VpnAnalyticsAttemptEndEvent(
      attemptId: id, result: result, elapsedMs: elapsedMs, endpoint: result == .connected ? endpoint : nil,
      selectedProtocol: state.selection.selectedProtocol,
      selectedLocationDescription: state.selection.selectedLocationDescription)
    tell("attempt end \(text(of: result)) after \(elapsedMs) ms") { $0.attemptDidEnd(event) }
  }

  // MARK: Delivery

  /// Returns once the reporter has taken everything and sent what it collects, or the time is over.
  func flush(within limit: Duration) async {
    let queue = environment.analyticsQueue
    let isDone: Void? = try? await environment.bounded(limit) { [reporter] in
      await withCheckedContinuation { continuation in queue.enqueue { continuation.resume() } }
      await (reporter as? any FlushingAnalytics)?.flush()
    }
    if isDone == nil { logger.warning("[analytics] the reporter did not take the last events within \(limit)") }
  }

  private func tell(_ text: String, _ deliver: @escaping @Sendable (any VpnConnectionAnalytics) -> Void) {
    logger.debug("[analytics] \(text)")
    environment.analyticsQueue.enqueue { [reporter] in deliver(reporter) }
  }

  private func milliseconds(since began: Duration) -> Int { (environment.clock.now - began).milliseconds }

  private func text(of result: PacketTunnelAttemptResult) -> String {
    switch result {
    case .connected: "connected"
    case .cancelled: "cancelled"
    case .failed(let error): "failed (\(loggable(error)))"
    }
  }
}

extension SessionSelection: CustomStringConvertible {
  package var description: String { "\(selectedProtocol) to \(selectedLocationDescription ?? "nowhere in particular")" }
}

extension Duration {
  var milliseconds: Int {
    let (seconds, attoseconds) = components
    return Int(clamping: seconds.multipliedReportingOverflow(by: 1000).partialValue)
      + Int(attoseconds / 1_000_000_000_000_000)
  }
}
