/// What was measured of a location, and how good it is by that.
package struct LocationAssessment: Hashable, Codable, Sendable {
  package var locationId: String
  /// nil: no answer.
  package var ping: LatencyStatistics?
  /// Bits per second of a short transfer over HTTP; nil: not tested, or not answered.
  package var downloadRate: Double?
  package var uploadRate: Double?
  /// From here; nil: not known, or it says nothing about the servers.
  package var distanceKm: Double?

  package init(
    locationId: String, ping: LatencyStatistics? = nil, downloadRate: Double? = nil, uploadRate: Double? = nil,
    distanceKm: Double? = nil
  ) {
    self.locationId = locationId
    self.ping = ping
    self.downloadRate = downloadRate
    self.uploadRate = uploadRate
    self.distanceKm = distanceKm
  }

  /// The usual round trip, and half of what the slow ones take more.
  package var latencyMs: Double? { ping.map { $0.medianMs + ($0.p90Ms - $0.medianMs) / 2 } }

  package var rating: KapeLocationRating {
    guard let ping, let latencyMs else { return .unknown }
    var rating: KapeLocationRating =
      switch latencyMs {
      case ..<50: .excellent
      case ..<100: .good
      case ..<200: .ok
      case ..<400: .degraded
      default: .poor
      }
    // What a call or a page suffers from, whatever the round trip is.
    switch Double(ping.lost) / Double(ping.lost + ping.answered) {
    case ..<0.1: break
    case ..<0.4: rating = min(rating, .degraded)
    default: rating = .poor
    }
    if let downloadRate { rating = min(rating, Self.limit(downloadRate, (8e6, 2e6, 0.5e6))) }
    if let uploadRate { rating = min(rating, Self.limit(uploadRate, (2e6, 0.5e6, 0.1e6))) }
    return rating
  }

  private static func limit(_ rate: Double, _ steps: (Double, Double, Double)) -> KapeLocationRating {
    rate >= steps.0 ? .excellent : rate >= steps.1 ? .ok : rate >= steps.2 ? .degraded : .poor
  }

  /// Best first: by rating, then by round trip as far as it is more than noise, then by distance, then as they came.
  package static func sorted(_ assessments: [LocationAssessment]) -> [LocationAssessment] {
    assessments.enumerated().sorted { one, other in
      let (first, second) = (one.element, other.element)
      guard first.rating == second.rating else { return first.rating > second.rating }
      return (first.noiselessLatency, first.distanceKm ?? .infinity, one.offset)
        < (second.noiselessLatency, second.distanceKm ?? .infinity, other.offset)
    }.map(\.element)
  }

  /// In steps of 5 ms.
  private var noiselessLatency: Int { latencyMs.map { Int($0 / 5) } ?? .max }
}
