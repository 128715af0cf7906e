/// One round of measuring: round trips to every location, and transfers with those that answer.
struct SmartMeasurement: Sendable {
  /// Transfers at a time: many together would measure the line, not the way.
  private static let transferWidth = 2

  private let meter: LatencyMeter
  private let transfers: (any TransferProbe)?
  private let turns = Turns(transferWidth)

  /// Without `transfers` there are none.
  init(_ meter: LatencyMeter, transfers: (any TransferProbe)?) {
    self.meter = meter
    self.transfers = transfers
  }

  /// Best first. `onProgress` is told once for each location, from no actor.
  ///
  /// - Throws: `CancellationError`.
  func run(
    _ locations: [LocationRecord], from point: GeographicPoint?,
    onProgress: (@Sendable (KapeSmartLocationProgress) -> Void)?
  ) async throws -> [LocationAssessment] {
    var assessments: [String: LocationAssessment] = [:]
    try await inParallel(
      locations, width: meter.options.width, { try await assess($0, from: point) },
      each: { location, assessment in
        assessments[location.id] = assessment
        onProgress?(
          KapeSmartLocationProgress(
            locationId: location.id, pingMs: assessment.ping?.medianMs, completed: assessments.count,
            total: locations.count))
      })
    return LocationAssessment.sorted(locations.compactMap { assessments[$0.id] })
  }

  /// The first of its addresses that answers speaks for a location.
  private func assess(_ location: LocationRecord, from point: GeographicPoint?) async throws -> LocationAssessment {
    var assessment = LocationAssessment(locationId: location.id)
    if !location.isGeolocated {
      assessment.distanceKm = point?.kilometres(
        to: GeographicPoint(latitude: location.latitude, longitude: location.longitude))
    }
    for address in location.testAddresses.prefix(3) {
      guard let ping = try await meter.measure(LatencyTarget(address)) else { continue }
      assessment.ping = ping
      if let transfers {
        let rates = try await turns.take { try await transfers.rates(address) }
        assessment.downloadRate = rates.download
        assessment.uploadRate = rates.upload
      }
      break
    }
    return assessment
  }
}

/// Lets a few at a time go, in the order of arrival.
private actor Turns {
  private var free: Int
  private var waiting: [CheckedContinuation<Void, Never>] = []

  init(_ count: Int) { free = count }

  nonisolated func take<Result: Sendable>(_ body: @Sendable () async throws -> Result) async throws -> Result {
    await begin()
    do {
      try Task.checkCancellation()
      let result = try await body()
      await end()
      return result
    } catch {
      await end()
      throw error
    }
  }

  private func begin() async {
    if free > 0 {
      free -= 1
    } else {
      await withCheckedContinuation { waiting.append($0) }
    }
  }

  private func end() {
    if waiting.isEmpty { free += 1 } else { waiting.removeFirst().resume() }
  }
}
