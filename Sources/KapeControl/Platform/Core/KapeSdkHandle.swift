import Foundation

/// The SDK, set up for one environment. Everything else is made of it: `KapeAuthClient`, `KapeVPNManager`, and in the tunnel's
/// process the provider.
public final class KapeSdkHandle: Sendable {
  public let settings: KapeSDKSettings
  let core: SdkCore
  private let building: Task<SdkManager, any Error>

  /// - Parameters:
  ///   - deviceModel: the kind of device (`desktop`, `mobile`, `tablet`, `firetv`, `appletv`). It is recorded for the tunnel,
  ///     which reports the same. nil: what was recorded before, else `desktop`.
  ///   - configure: called once, before anything is made; the place to give the SDK a storage, say.
  /// - Throws: `KapeSDKSettingsError` when a value that the program has set does not keep to the rules; what the group's
  ///   folder throws.
  public convenience init(
    settings: KapeSDKSettings, deviceModel: String? = nil, configure: (@Sendable (SdkConfiguration) -> Void)? = nil
  ) async throws {
    try self.init(settings, deviceModel, configure, SdkEnvironment(settings))
    _ = try await awaitSdkManager()
  }

  /// The same for code that cannot suspend. What fails later is thrown by `awaitSdkManager`.
  public convenience init(
    settings: KapeSDKSettings, deviceModel: String? = nil, configure: (@Sendable (SdkConfiguration) -> Void)? = nil
  ) throws {
    try self.init(settings, deviceModel, configure, SdkEnvironment(settings))
  }

  package init(
    _ settings: KapeSDKSettings, _ deviceModel: String? = nil,
    _ configure: (@Sendable (SdkConfiguration) -> Void)? = nil,
    _ environment: SdkEnvironment
  ) throws {
    let configuration = SdkConfiguration()
    configure?(configuration)
    let core = try SdkCore(settings, deviceModel: deviceModel, configuration, environment)
    self.settings = settings
    self.core = core
    building = Task {
      try await core.prepare()
      return SdkManager(core)
    }
  }

  /// The manager, once it is ready.
  public func awaitSdkManager() async throws -> SdkManager { try await building.value }

  /// Chooses the subscription that the VPN, or another product, is used with: the first that grants access and carries the
  /// product's entitlement. To be called once after signing in, and before connecting; the choice is kept until somebody
  /// else signs in.
  ///
  /// - Throws: `KapeSubscriptionError.noMatchingSubscription`; `KapeAuthError`; `KapeSDKSettingsError.missingKey` for a
  ///   setting that it takes.
  public func activateSubscription(for product: KapeProductType) async throws {
    try await core.activation.activate(product)
  }

  /// The subscription that was chosen; nil: none yet, or a guest, whose access is without one.
  public var activeSubscription: KapeSubscription? { (try? core.store.sessionNow())?.activeSubscription }

  /// What a connection is authenticated with at Kape's backend: OpenVPN's password with the user name `jwt-auth`,
  /// Lightway's token, and the token of the key exchange for WireGuard. Kept until it expires.
  ///
  /// - Throws: `KapeAuthError`; `KapeSubscriptionError`; `KapeSDKSettingsError`.
  package func connectionToken() async throws -> String { try await core.chain.connectionToken() }

  /// Makes the SDK's own connections go past the tunnel from now on, by sockets of this source.
  package func reachBackend(by sockets: KapeHTTPSockets) { core.sockets.use(sockets) }

  /// The OIDC access token, for the backend's other paths.
  package func identityToken() async throws -> String { try await core.keeper.identityToken() }
}
