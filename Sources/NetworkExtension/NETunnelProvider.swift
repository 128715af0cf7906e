internal import KapeControl
internal import Synchronization

/// A provider of a tunnel: messages of its app, its settings, its state.
open class NETunnelProvider: NEProvider, @unchecked Sendable {
  private struct State: Sendable {
    var isReasserting = false
    var host: (any TunnelHost)?
    var configuration: Unshared<NEVPNProtocol>?
    var clock: any Clock<Duration> = ContinuousClock()
  }
  private let state = Mutex(State())

  /// What the provider's requests go to; nil: nothing, and they fail.
  package var host: (any TunnelHost)? {
    get { state.withLock { $0.host } }
    set { state.withLock { $0.host = newValue } }
  }

  /// What the deadlines of its requests are measured by.
  package var clock: any Clock<Duration> {
    get { state.withLock { $0.clock } }
    set { state.withLock { $0.clock = newValue } }
  }

  /// The configuration that the app has saved.
  open var protocolConfiguration: NEVPNProtocol {
    state.withLock { $0.configuration }?.value ?? NETunnelProviderProtocol()
  }

  package func setProtocolConfiguration(_ configuration: NEVPNProtocol) {
    let boxed = Unshared(configuration)
    state.withLock { $0.configuration = boxed }
  }

  /// True while a tunnel that was up is being established anew. The app sees it as `NEVPNStatus.reasserting`.
  open var reasserting: Bool {
    get { state.withLock { $0.isReasserting } }
    set {
      let host = state.withLock { state in
        defer { state.isReasserting = newValue }
        return state.isReasserting == newValue ? nil : state.host
      }
      host?.setReasserting(newValue)
    }
  }

  /// A message of the app, and the way to answer it, if it waits for an answer: ten seconds at most. The base answers
  /// with nil.
  open func handleAppMessage(_ messageData: Data, completionHandler: (@Sendable (Data?) -> Void)? = nil) {
    completionHandler?(nil)
  }

  static let settingsDeadline: Duration = .seconds(10)

  /// Applies addresses, routes, name servers and MTU as a whole; nil takes them all away. Either all of them are there
  /// afterwards, or those that were there before are, and the error says what was wrong:
  /// `NETunnelProviderError.networkSettingsInvalid` names the value, `.networkSettingsFailed` what the system refused.
  /// When there is no answer within ten seconds that is `.networkSettingsFailed` too: then the one or the other is
  /// there, and the next call replaces it.
  open func setTunnelNetworkSettings(
    _ tunnelNetworkSettings: NETunnelNetworkSettings?, completionHandler: (@Sendable ((any Error)?) -> Void)? = nil
  ) {
    let (host, clock) = state.withLock { ($0.host, $0.clock) }
    let wanted: Result<TunnelSettings?, any Error> = Result { try tunnelNetworkSettings?.tunnelSettings() }
    Task {
      do {
        guard let host else { throw NETunnelProviderError(.networkSettingsFailed, "this provider has no tunnel") }
        let settings = try wanted.get()
        try await within(Self.settingsDeadline, of: clock, "the system") { try await host.apply(settings) }
        completionHandler?(nil)
      } catch let late as DeadlineExceeded {
        completionHandler?(NETunnelProviderError(.networkSettingsFailed, "\(late)"))
      } catch {
        completionHandler?(error)
      }
    }
  }

  /// The same for callers that wait.
  public func setTunnelNetworkSettings(_ tunnelNetworkSettings: NETunnelNetworkSettings?) async throws {
    try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
      setTunnelNetworkSettings(tunnelNetworkSettings) { error in
        if let error { continuation.resume(throwing: error) } else { continuation.resume() }
      }
    }
  }
}
