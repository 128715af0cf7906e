import Combine
import KapePlatform
import Testing

@MainActor @Suite struct PacketTunnelStateTests {
  @Test("What a session does is shown in order, each change once")
  func shown() async throws {
    let state = PacketTunnelState()
    let seen = Journal()
    let statuses = state.$tunnelStatus.removeDuplicates().sink {
      seen.add("status \($0.map { $0.rawValue } ?? "none")")
    }
    let endpoints = state.$connectedEndpoint.sink { seen.add("endpoint \($0?.host ?? "none")") }
    let errors = state.$lastError.sink { seen.add("error \($0?.cause.rawValue ?? "none")") }
    defer { for follower in [statuses, endpoints, errors] { follower.cancel() } }
    #expect(seen.take() == ["status none", "endpoint none", "error none"])

    let observer = PublishedSessionObserver(state)
    var session = SessionState()
    session.status = .connecting
    observer.sessionDidChange(session)
    session.lastError = .connectTimeout
    observer.sessionDidChange(session)
    session.status = .connected
    session.connectedEndpoint = .init(host: "192.0.2.1", protocolDescription: "WireGuard")
    session.lastError = nil
    observer.sessionDidChange(session)
    // Nothing of it is shown here.
    session.dataUsage = .init(bytesReceived: 1, bytesSent: 1)
    observer.sessionDidChange(session)
    session.status = .disconnected
    observer.sessionDidChange(session)
    while state.tunnelStatus != .disconnected { await Task.yield() }
    #expect(
      seen.take() == [
        "status connecting", "error connectTimeout", "status connected", "endpoint 192.0.2.1", "error none",
        "status disconnected",
      ])
  }
}
