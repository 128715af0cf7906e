package import Foundation

/// Posts events to the collector: some at a time, and those that could not be sent later again.
package actor TrackingClient: TrackingProtocol {
  package struct Policy: Sendable {
    /// So many are sent without waiting for more.
    package var full = 50
    /// The oldest go when there are more.
    package var most = 1000
    /// How long one waits for others.
    package var patience = Duration.seconds(10)
    /// How long after each failure in a row it is tried again; the last holds for all that follow.
    package var retries: [Duration] = [30, 60, 120, 300, 600].map { .seconds($0) }

    package init() {}
  }

  private let url: String?
  private let http: KapeHTTPClient
  private let identity: TrackingIdentity
  private let logger: KapeLogger
  private let clock: any Clock<Duration>
  private let date: @Sendable () -> Date
  private let policy: Policy

  private var configuration: MixpanelConfiguration?
  private var isOptedIn = false
  private var distinctID: String?
  private var queue: [TrackedEvent] = []
  private var sending: Task<Void, Never>?
  private var timer: Task<Void, Never>?
  private var failures = 0
  /// The collector has asked for patience; the timer ends it.
  private var isHeldBack = false
  private var hasSaidThatThereIsNoURL = false

  /// Posts to `url`; nil: events are dropped.
  package init(
    url: URL?, http: KapeHTTPClient, identity: TrackingIdentity,
    logger: KapeLogger = KapeLogger(subsystem: "KapeCore", category: "tracking"),
    clock: any Clock<Duration> = ContinuousClock(), date: @escaping @Sendable () -> Date = { Date() },
    policy: Policy = Policy()
  ) {
    self.url = url?.absoluteString
    self.http = http
    self.identity = identity
    self.logger = logger
    self.clock = clock
    self.date = date
    self.policy = policy
  }

  /// To the settings' `TrackingURL`, with the identity that the group's processes share.
  package init(settings: KapeSDKSettings, sockets: KapeHTTPSockets = .system) {
    let trusted = settings.caCertificates
    let host = settings.trackingURL?.host(percentEncoded: false) ?? ""
    let http = KapeHTTPClient(
      anchors: trusted.isEmpty ? .system : .der(trusted), allowsPlainHTTP: LoopbackName.contains(host), sockets: sockets
    )
    let folder = try? SharedContainer(group: settings.appGroupIdentifier)
    self.init(
      url: settings.trackingURL, http: http, identity: TrackingIdentity(path: folder.map { $0.path + "/tracking.json" })
    )
  }

  deinit {
    timer?.cancel()
  }

  package func initializeAsync(config: MixpanelConfiguration) async {
    configuration = config
    if config.optOutTrackingByDefault { optOut() }
    let current = await identity.current()
    if distinctID == nil { distinctID = current }
  }

  package func optInTrackingAsync() async {
    isOptedIn = true
  }

  package func optOutTrackingAsync() async {
    optOut()
  }

  package func resetAsync() async {
    distinctID = await identity.renew()
  }

  package func trackAsync(event: String, properties: [String: String], category: EventCategory) async {
    guard isOptedIn, let configuration, configuration.categories.contains(category), let distinctID else { return }
    guard url != nil else {
      if !hasSaidThatThereIsNoURL { logger.debug("[tracking] the settings have no TrackingURL: events are dropped") }
      hasSaidThatThereIsNoURL = true
      return
    }
    let owner = TrackedEvent.Owner(projectToken: configuration.projectToken, distinctID: distinctID)
    guard let made = TrackedEvent(event, properties, category, owner: owner, time: date()) else {
      return logger.debug("[tracking] an event whose name or category is empty or too long is dropped")
    }
    queue.append(made)
    if queue.count > policy.most { queue.removeFirst(queue.count - policy.most) }
    if sending != nil || isHeldBack || failures > 0 { return }
    if queue.count >= policy.full { _ = send() } else if timer == nil { wait(policy.patience) }
  }

  package func flushAsync() async {
    guard let last = queue.last?.id else { return }
    // What is being sent may have begun before the last one was there.
    await sending?.value
    if !isHeldBack, queue.contains(where: { $0.id == last }) { await send().value }
  }

  private func optOut() {
    isOptedIn = false
    queue = []
    timer?.cancel()
    timer = nil
    failures = 0
  }

  private func wait(_ delay: Duration) {
    timer?.cancel()
    timer = Task { [weak self, clock] in
      guard (try? await clock.sleep(for: delay)) != nil else { return }
      await self?.timeIsOver()
    }
  }

  private func timeIsOver() {
    // Cancelled while it was on its way here, or another one is set.
    guard !Task.isCancelled else { return }
    timer = nil
    isHeldBack = false
    if !queue.isEmpty { _ = send() }
  }

  /// Sends what there is, unless that is being done.
  private func send() -> Task<Void, Never> {
    if let sending { return sending }
    if !isHeldBack {
      timer?.cancel()
      timer = nil
    }
    let task = Task { await sendAll() }
    sending = task
    return task
  }

  private func sendAll() async {
    defer { sending = nil }
    while isOptedIn, !isHeldBack, let url, let batch = TrackingBatch(first: queue) {
      switch await post(batch, to: url) {
      case .done:
        failures = 0
        remove(batch)
      case .refused(let reason):
        logger.warning("[tracking] \(batch.events.count) events are dropped: \(reason)")
        remove(batch)
      case .later(let reason, let delay):
        let delay = delay ?? policy.retries[min(failures, policy.retries.count - 1)]
        logger.debug("[tracking] \(batch.events.count) events wait for \(delay): \(reason)")
        guard isOptedIn else { return }
        failures += 1
        return wait(delay)
      }
    }
  }

  private func remove(_ batch: TrackingBatch) {
    let sent = Set(batch.events.map(\.id))
    queue.removeAll { sent.contains($0.id) }
  }

  private enum Outcome {
    case done
    case refused(String)
    /// The delay is the collector's wish.
    case later(String, Duration?)
  }

  private func post(_ batch: TrackingBatch, to url: String) async -> Outcome {
    do {
      let reply = try await http.post(url, json: batch)
      switch reply.status {
      case 200..<300: return .done
      case 429, 503:
        let wish = reply.headers["Retry-After"].flatMap { Int($0) }.map { Duration.seconds(max(1, min($0, 3600))) }
        isHeldBack = wish != nil
        return .later("status \(reply.status)", wish)
      case 500...: return .later("status \(reply.status)", nil)
      default: return .refused("the collector answered with status \(reply.status)")
      }
    } catch {
      return .later(loggable(error), nil)
    }
  }
}
