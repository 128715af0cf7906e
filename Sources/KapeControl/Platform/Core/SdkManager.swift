/// What a handle offers once it is ready.
public final class SdkManager: Sendable {
  private let client: TrackingClient

  init(_ core: SdkCore) {
    client = TrackingClient(settings: core.settings, sockets: core.sockets.sockets)
  }

  /// Sends events to the settings' `TrackingURL`; always the same object. Nothing is sent before somebody has opted in,
  /// and nothing at all where there is no such URL.
  public func tracking() throws -> any TrackingProtocol { client }
}
