import Foundation
import KapeControl
import Synchronization

/// Lists the locations that a tunnel can go to, and measures which of them are near.
///
/// A list that was fetched before, and what was measured in this network, are there from the beginning, also in another
/// run of the app.
public final class KapeLocationService: Sendable {
  private struct State {
    var list: [LocationRecord] = []
    var smart: [KapeServerLocation] = []
  }

  private let environment: LocationEnvironment
  private let state = Mutex(State())
  private let disk = DiskQueue("locations")

  package init(_ environment: LocationEnvironment) {
    self.environment = environment
    guard let list = LocationList.load(environment.container, source: environment.directory.source) else { return }
    state.withLock { $0.list = list.locations }
    let cache = SmartLocationCache.load(environment.container)
    if let best = cache.best(for: environment.network().fingerprint, at: environment.now()), best.match == .station {
      show(best.entry.assessments)
    }
  }

  /// In the backend's order.
  public var allLocations: [KapeServerLocation] { state.withLock { $0.list.map(\.location) } }

  /// The same, by continent.
  public var locationsByContinent: [String: [KapeServerLocation]] {
    Dictionary(grouping: allLocations, by: \.continent)
  }

  /// Those that were measured, best first, each with its rating.
  public var smartLocations: [KapeServerLocation] { state.withLock { $0.smart } }

  /// Fetches the list anew. When it fails, the last one stays.
  ///
  /// - Throws: `KapeLocationError`; `CancellationError`.
  public func fetchLocations() async throws {
    let locations = try await environment.directory.locations()
    let list = LocationList(
      source: environment.directory.source, fetchedAt: environment.now(), locations: locations)
    let ids = Set(locations.map(\.id))
    state.withLock { state in
      state.list = locations
      state.smart.removeAll { !ids.contains($0.id) }
    }
    let (container, logger) = (environment.container, environment.logger)
    do {
      try await disk.run { try list.save(container) }
    } catch {
      logger.warning("the locations are not kept for the next run: \(error)")
    }
  }

  /// Measures every location, unless that was done in this network within 30 days: then that is the result at once.
  ///
  /// - Parameters:
  ///   - extendedTest: Whether to measure short transfers over HTTP besides the round trips.
  ///   - onProgress: Told once for each location that is done, one after the other, on no particular actor.
  /// - Throws: `KapeLocationError.notFetched` without a list, `.tunnelIsUp` while a tunnel is up and nothing was measured
  ///   before; `CancellationError`.
  public func fetchSmartLocations(
    extendedTest: Bool = true, onProgress: (@Sendable (KapeSmartLocationProgress) -> Void)? = nil
  ) async throws {
    let locations = state.withLock { $0.list }
    guard !locations.isEmpty else { throw KapeLocationError.notFetched }
    let container = environment.container
    let findNetwork = environment.network
    let (network, cache) = try await disk.run { (findNetwork(), SmartLocationCache.load(container)) }
    let known = cache.best(for: network.fingerprint, at: environment.now())
    if let known, known.match == .station, known.entry.isExtended || !extendedTest {
      return show(known.entry.assessments)
    }
    if network.isTunnel {
      guard let known else { throw KapeLocationError.tunnelIsUp }
      environment.logger.info("a tunnel is up: the locations are those that were measured before")
      return show(known.entry.assessments)
    }
    let measurement = SmartMeasurement(
      LatencyMeter(environment.latency, environment.options), transfers: extendedTest ? environment.transfers : nil)
    let assessments = try await measurement.run(locations, from: network.point, onProgress: onProgress)
    show(assessments)
    guard assessments.contains(where: { $0.ping != nil }) else {
      // Offline, or everything is filtered: that is not to be believed for 30 days.
      return environment.logger.warning("no location answered: the measurement is not kept")
    }
    let entry = SmartLocationCache.Entry(
      fingerprint: network.fingerprint, measuredAt: environment.now(), isExtended: extendedTest,
      assessments: assessments)
    await keep(entry)
  }

  private func keep(_ entry: SmartLocationCache.Entry) async {
    let (container, now) = (environment.container, environment.now())
    do {
      try await disk.run {
        var cache = SmartLocationCache.load(container)
        cache.insert(entry, at: now)
        try cache.save(container)
      }
    } catch {
      environment.logger.warning("the measurement is not kept for the next run: \(error)")
    }
  }

  /// Those that are on the list, in their order.
  private func show(_ assessments: [LocationAssessment]) {
    state.withLock { state in
      let locations = Dictionary(state.list.map { ($0.id, $0.location) }) { first, _ in first }
      state.smart = assessments.compactMap { assessment in
        guard var location = locations[assessment.locationId] else { return nil }
        location.rating = assessment.rating
        return location
      }
    }
  }
}
