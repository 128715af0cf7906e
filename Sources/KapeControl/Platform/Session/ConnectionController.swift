/// Runs the connections of one type of configuration. The session finds it by that type, sets its reporter, and calls
/// `connect`, then `runVPN`, then `stop`, one connection at a time.
public protocol ConnectionController<Configuration>: AnyObject, Sendable {
  associatedtype Configuration: VpnConfiguration

  /// Whom to tell of attempts; set by the session before the first connection.
  func setAttemptReporter(_ reporter: (any AttemptReporter)?) async

  /// Returns once the handshake is complete and the interface is up. Throws a `PacketTunnelError` otherwise and leaves
  /// nothing behind; `CancellationError` only when the task was cancelled.
  func connect(_ configuration: Configuration) async throws

  /// Suspends for the life of the connection. Nil: it was stopped; else what ended it.
  func runVPN() async -> PacketTunnelError?

  /// Takes the connection down and lets `runVPN` return. May be called at any time and any number of times.
  func stop() async

  /// The server's private address in the connection that is up, if there is one.
  var gateway: IpAddress? { get async }

  /// Bytes since the connection came up; nil when there is none or they are not counted.
  func currentDataUsage() async -> PacketTunnelDataUsage?
}

extension ConnectionController {
  public var gateway: IpAddress? { nil }
  public func currentDataUsage() async -> PacketTunnelDataUsage? { nil }
}
