import Foundation
import KapeControl

/// The parts of a handle, made at once and without a wait.
final class SdkCore: Sendable {
  let settings: KapeSDKSettings
  let container: SharedContainer
  let deviceModel: String?
  let clock: any SessionClock
  let store: SessionStore
  let issuer: Issuer
  let keeper: SessionKeeper
  let chain: TokenChain
  let account: AccountState
  let activation: ActivatedSubscription
  let browser: BrowserSignIn
  let logger: KapeLogger
  let sockets: SwitchedSockets
  private let follower: SessionFollower

  /// - Throws: `KapeSDKSettingsError`; `SharedContainerError`.
  init(
    _ settings: KapeSDKSettings, deviceModel: String?, _ configuration: SdkConfiguration, _ environment: SdkEnvironment
  ) throws {
    try settings.validate()
    let container = try environment.container ?? SharedContainer(group: settings.appGroupIdentifier)
    let clock = environment.clock
    let logger = KapeLogger(subsystem: "KapeAuth", category: "session")
    let folder = container.session(settings.keychainService)
    let store = SessionStore(
      configuration.storage(folder: folder, service: settings.keychainService), folder: folder, settings: settings,
      logger: logger)
    let account = AccountState(try? store.sessionNow())
    let issuer = Issuer(settings, transport: environment.transport, clock: clock)
    let changes = SessionChanges()
    let keeper = SessionKeeper(store, issuer: issuer, settings: settings, clock: clock, logger: logger) {
      await changes.tell($0)
    }
    let details = ClientDetails(
      appVersion: configuration.appVersion, deviceModel: deviceModel ?? SharedConfiguration.load(container).deviceModel)
    let calls = BackendCalls(settings: settings, transport: environment.transport, details: details, clock: clock)
    let feed = SubscriptionFeed(
      clock: clock, interval: environment.subscriptionInterval, logger: logger, account: account,
      fetched: { subscriptions, session in
        do {
          try await ActivatedSubscription.update(store, subscriptions, of: session)
        } catch {
          logger.warning("the activated subscription was not brought up to date: \(loggable(error))")
        }
      },
      fetch: { session, leaving in
        try await keeper.callWithIdentityToken(of: session) { token in
          await leaving()
          return try await calls.subscriptions(token)
        }
      })
    let chain = TokenChain(store: store, keeper: keeper, calls: calls, clock: clock)
    let follower = SessionFollower(store, feed: feed, folder: folder, logger: logger)
    changes.take { [weak follower] in await follower?.changed($0) }

    self.settings = settings
    self.container = container
    self.deviceModel = deviceModel
    self.clock = clock
    self.store = store
    self.issuer = issuer
    self.keeper = keeper
    self.chain = chain
    self.account = account
    activation = ActivatedSubscription(
      store: store, keeper: keeper, calls: calls, chain: chain, feed: feed, settings: settings, clock: clock,
      logger: logger)
    browser = BrowserSignIn(clock: clock, logger: logger)
    self.logger = logger
    sockets = environment.sockets
    self.follower = follower
  }

  /// Keeps state and subscriptions as they are, by what this process and others do. The first call counts.
  func follow() { follower.start() }

  func changed(_ change: SessionChange) async { await follower.changed(change) }

  /// What has to be done before the manager is there.
  func prepare() async throws {
    SharedDefaults.synchronize(settings.appGroupIdentifier)
    try container.make()
    if let deviceModel { try await DeviceModel.record(deviceModel, in: container) }
  }
}

extension SdkConfiguration {
  fileprivate func storage(folder: String, service: String) -> StorageQueue {
    if let hostStorage { return hostStorage }
    let files = FileStorage(folder: folder)
    switch sessionSealing {
    case .none: return StorageQueue(files)
    case .credential: return StorageQueue(SealedStorage(files, key: CredentialKey(), context: service))
    case .secretService:
      return StorageQueue(SealedStorage(files, key: SecretServiceKey(service: service), context: service))
    }
  }
}
