/// Follows what a tunnel does, for quality reports. A session is one wish of the user, from connect to disconnect; a
/// connection is one try to come up and stay up, several a session; an attempt is the trial of one configuration.
///
/// Called on a serial queue of the SDK's own, in the order of what happened. One that takes its time delays only what it
/// is told next, never the tunnel. Memory in the tunnel's process is scarce: keep it light.
public protocol VpnConnectionAnalytics: Sendable {
  func sessionDidBegin(_ event: VpnAnalyticsSessionBeginEvent)
  func sessionDidEnd(_ event: VpnAnalyticsSessionEndEvent)
  func connectionDidBegin(_ event: VpnAnalyticsConnectionBeginEvent)
  func connectionDidEnd(_ event: VpnAnalyticsConnectionEndEvent)
  func attemptDidBegin(_ event: VpnAnalyticsAttemptBeginEvent)
  func attemptDidEnd(_ event: VpnAnalyticsAttemptEndEvent)
}

/// Takes everything and does nothing. The trail is in the log all the same.
public struct NoopVpnConnectionAnalytics: VpnConnectionAnalytics {
  public init() {}

  public func sessionDidBegin(_ event: VpnAnalyticsSessionBeginEvent) {}
  public func sessionDidEnd(_ event: VpnAnalyticsSessionEndEvent) {}
  public func connectionDidBegin(_ event: VpnAnalyticsConnectionBeginEvent) {}
  public func connectionDidEnd(_ event: VpnAnalyticsConnectionEndEvent) {}
  public func attemptDidBegin(_ event: VpnAnalyticsAttemptBeginEvent) {}
  public func attemptDidEnd(_ event: VpnAnalyticsAttemptEndEvent) {}
}
