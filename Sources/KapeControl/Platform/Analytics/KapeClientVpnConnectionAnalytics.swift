/// Reports what the tunnel does by way of a `TrackingProtocol`, as events of the category `qualityMetrics`. It only sends:
/// whether anything leaves the machine is up to how `tracking` was initialized and whether the user has opted in.
///
/// The log has a line `[tracking] EVENT PROPERTIES` at debug before each.
public final class KapeClientVpnConnectionAnalytics: VpnConnectionAnalytics, FlushingAnalytics {
  private enum Item: Sendable {
    case event(String, [String: String])
    case flush(CheckedContinuation<Void, Never>)
    case reset(CheckedContinuation<Void, Never>)

    /// Lets nobody wait for what will not be done.
    func giveUp() {
      switch self {
      case .event: break
      case .flush(let waiting), .reset(let waiting): waiting.resume()
      }
    }
  }

  private let queue: AsyncStream<Item>.Continuation

  /// - Parameter logger: where the trail goes.
  public init(tracking: any TrackingProtocol, logger: KapeLogger) {
    // More than a session has; a collector that never answers cannot take all memory.
    let (items, queue) = AsyncStream.makeStream(of: Item.self, bufferingPolicy: .bufferingOldest(4096))
    self.queue = queue
    // Ends once this object is gone and everything before is sent.
    Task {
      for await item in items {
        switch item {
        case .event(let name, let properties):
          logger.debug("[tracking] \(name) \(VpnAnalyticsProperties.json(properties))")
          await tracking.trackAsync(event: name, properties: properties, category: .qualityMetrics)
        case .flush(let waiting):
          await tracking.flushAsync()
          waiting.resume()
        case .reset(let waiting):
          await tracking.resetAsync()
          waiting.resume()
        }
      }
    }
  }

  deinit {
    queue.finish()
  }

  public func sessionDidBegin(_ event: VpnAnalyticsSessionBeginEvent) { report(VpnAnalyticsProperties.of(event)) }
  public func sessionDidEnd(_ event: VpnAnalyticsSessionEndEvent) { report(VpnAnalyticsProperties.of(event)) }
  public func connectionDidBegin(_ event: VpnAnalyticsConnectionBeginEvent) { report(VpnAnalyticsProperties.of(event)) }
  public func connectionDidEnd(_ event: VpnAnalyticsConnectionEndEvent) { report(VpnAnalyticsProperties.of(event)) }
  public func attemptDidBegin(_ event: VpnAnalyticsAttemptBeginEvent) { report(VpnAnalyticsProperties.of(event)) }
  public func attemptDidEnd(_ event: VpnAnalyticsAttemptEndEvent) { report(VpnAnalyticsProperties.of(event)) }

  /// Sends everything that was reported before, and returns when that is done or cannot be done.
  public func flush() async {
    await withCheckedContinuation { put(.flush($0)) }
  }

  /// Lets what is reported from now on be about somebody else: for a change of account, not for each stop. What was
  /// reported before is about who it was.
  public func reset() async {
    await withCheckedContinuation { put(.reset($0)) }
  }

  private func report(_ event: VpnAnalyticsProperties.Event) {
    put(.event(event.name, event.properties))
  }

  private func put(_ item: Item) {
    switch queue.yield(item) {
    case .enqueued: break
    case .dropped(let item): item.giveUp()
    case .terminated: item.giveUp()
    @unknown default: item.giveUp()
    }
  }
}

/// A reporter with something to send before the process may end.
package protocol FlushingAnalytics: Sendable {
  func flush() async
}
