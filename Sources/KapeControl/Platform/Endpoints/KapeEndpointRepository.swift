import Foundation
package import KapeProtocols

/// Endpoints of locations, from the backend or from what it answered before: an answer is kept for an hour, for app and
/// tunnel alike. The way to the servers is measured when an answer comes.
///
/// What is kept never stands in the way: without it, or when it cannot be read or written, the backend is asked each time;
/// and when the backend cannot be reached, an answer of any age is better than none.
package actor KapeEndpointRepository {
  /// The backend is not asked again sooner, however often everything that it told was tried.
  package static let refetchInterval = Duration.seconds(30)

  package struct Endpoints: Equatable, Sendable {
    /// In pecking order.
    package var endpoints: [DiscoveredEndpoint]
    package var latencies: [IPAddress: Duration]
    /// They are older than they should be.
    package var isOutdated: Bool
  }

  private let container: SharedContainer
  private let directory: any EndpointDirectory
  private let latencies: ServerLatencies
  private let clock: any SessionClock
  private let logger: any PacketTunnelLogger
  private let disk = DiskQueue("endpoints.json")
  /// When the backend may be asked again, after it said so.
  private var blockedUntil: Duration?
  private var fetchedAt: [DiscoveryCache.Key: Duration] = [:]

  package init(
    container: SharedContainer, directory: any EndpointDirectory, latency: any LatencyProbe, clock: any SessionClock,
    logger: any PacketTunnelLogger
  ) {
    self.container = container
    self.directory = directory
    latencies = ServerLatencies(latency, clock: clock)
    self.clock = clock
    self.logger = logger
  }

  /// The endpoints of a location.
  ///
  /// - Parameter anew: Everything that is kept was tried: the backend is to be asked, unless that was just done.
  /// - Throws: `TerminalStartError` when nobody is signed in, or without a subscription; `DiscoveryError`;
  ///   `CancellationError`.
  package func endpoints(
    _ locationId: String, _ protocols: Set<DiscoveryProtocol>, anew: Bool = false
  ) async throws -> Endpoints {
    let key = DiscoveryCache.Key(source: directory.source, locationId: locationId, protocols: protocols)
    let kept = await load()[key]
    do {
      // Also for what is kept: a start without a session is to say so.
      try await directory.checkAccess()
      if let kept, kept.isFresh(at: clock.wallTime), !anew || wasJustFetched(key) {
        logger.debug("[endpoints] \(kept.endpoints.count) of \(locationId), kept")
        return Endpoints(endpoints: kept.endpoints, latencies: kept.latencies, isOutdated: false)
      }
      return try await fetch(key, protocols, previous: kept)
    } catch let error as DiscoveryError {
      guard let kept, error.isTransient else { throw error }
      let isOutdated = !kept.isFresh(at: clock.wallTime)
      logger.warning(
        "[endpoints] those of \(locationId) are from \(kept.fetchedAt.formatted(.iso8601))"
          + "\(isOutdated ? ", outdated" : ""): \(error)")
      return Endpoints(endpoints: kept.endpoints, latencies: kept.latencies, isOutdated: isOutdated)
    }
  }

  private func wasJustFetched(_ key: DiscoveryCache.Key) -> Bool {
    fetchedAt[key].map { clock.now - $0 < Self.refetchInterval } ?? false
  }

  private func fetch(
    _ key: DiscoveryCache.Key, _ protocols: Set<DiscoveryProtocol>, previous: DiscoveryCache.Entry?
  ) async throws -> Endpoints {
    if let blockedUntil, clock.now < blockedUntil {
      throw DiscoveryError.tooManyRequests(seconds: Int(((blockedUntil - clock.now) / .seconds(1)).rounded(.up)))
    }
    let answer: DiscoveryAnswer
    do {
      answer = try await directory.endpoints(key.locationId, protocols)
    } catch DiscoveryError.tooManyRequests(let seconds) {
      blockedUntil = clock.now + .seconds(seconds)
      throw DiscoveryError.tooManyRequests(seconds: seconds)
    }
    guard answer.locationId == key.locationId else {
      throw DiscoveryError.unusable(".location_id: another location than was asked for")
    }
    fetchedAt[key] = clock.now
    for line in answer.refused.prefix(5) { logger.warning("[endpoints] left out of \(key.locationId): \(line)") }
    logger.debug("[endpoints] \(answer.endpoints.count) of \(key.locationId), fetched")
    let entry = DiscoveryCache.Entry(
      key: key, fetchedAt: clock.wallTime, maxAgeSeconds: answer.maxAgeSeconds, endpoints: answer.endpoints,
      latenciesMs: try await latencies.measure(answer.endpoints))
    await keep(entry)
    return Endpoints(endpoints: entry.endpoints, latencies: entry.latencies, isOutdated: false)
  }

  private func load() async -> DiscoveryCache {
    let container = container
    do {
      return try await disk.run { try DiscoveryCache.load(container) }
    } catch {
      logger.warning("[endpoints] what was kept cannot be read: \(loggable(error))")
      return DiscoveryCache()
    }
  }

  private func keep(_ entry: DiscoveryCache.Entry) async {
    let container = container
    do {
      try await disk.run {
        var cache = (try? DiscoveryCache.load(container)) ?? DiscoveryCache()
        cache.insert(entry)
        try cache.save(container)
      }
    } catch {
      logger.warning("[endpoints] they are not kept for the next start: \(loggable(error))")
    }
  }
}
