/// What the SDK takes from outside, so that tests can give it time and answers of their own.
package struct SdkEnvironment: Sendable {
  package var transport: any BackendTransport
  package var clock: any SessionClock
  /// Between two fetches of subscriptions.
  package var subscriptionInterval: Duration
  /// The group's folder; nil: the settings' one.
  package var container: SharedContainer?
  var sockets = SwitchedSockets()

  /// The machine's clocks and network.
  init(_ settings: KapeSDKSettings) {
    let sockets = SwitchedSockets()
    self.init(transport: HTTPClientTransport(settings, sockets: sockets.sockets))
    self.sockets = sockets
  }

  package init(
    transport: any BackendTransport, clock: any SessionClock = SystemSessionClock(),
    subscriptionInterval: Duration = .seconds(3600), container: SharedContainer? = nil
  ) {
    self.transport = transport
    self.clock = clock
    self.subscriptionInterval = subscriptionInterval
    self.container = container
  }
}
