import Foundation
import Testing

@testable import KapePlatform

@Suite("§5.4: how good a location is") struct LocationAssessmentTests {
  private func assessment(
    _ id: String = "x", ms: Double? = 10, p90: Double? = nil, lost: Int = 0, down: Double? = nil, up: Double? = nil,
    km: Double? = nil
  ) throws -> LocationAssessment {
    var statistics = try #require(LatencyStatistics([.zero]))
    statistics.medianMs = ms ?? 0
    statistics.p90Ms = p90 ?? statistics.medianMs
    statistics.lost = lost
    statistics.answered = 10 - lost
    return LocationAssessment(
      locationId: id, ping: ms == nil ? nil : statistics, downloadRate: down, uploadRate: up, distanceKm: km)
  }

  @Test("a better rating is the greater one")
  func comparable() {
    #expect(KapeLocationRating.allCases.sorted(by: >) == [.excellent, .good, .ok, .degraded, .poor, .unknown])
    #expect(KapeLocationRating.excellent > .good && KapeLocationRating.poor > .unknown)
  }

  @Test(
    "by the round trip",
    arguments: [
      (0, .excellent), (49.9, .excellent), (50, .good), (99.9, .good), (100, .ok), (199.9, .ok), (200, .degraded),
      (399.9, .degraded), (400, .poor), (9000, .poor), (nil, .unknown),
    ] as [(Double?, KapeLocationRating)])
  func latency(_ ms: Double?, _ rating: KapeLocationRating) throws {
    #expect(try assessment(ms: ms).rating == rating)
  }

  @Test("half of what the slow ones take more counts")
  func jitter() throws {
    #expect(try assessment(ms: 40, p90: 59).rating == .excellent)
    #expect(try assessment(ms: 40, p90: 60).rating == .good)
  }

  @Test(
    "loss and slow transfers take away from it, and add nothing",
    arguments: [
      (1, nil, nil, .degraded), (3, nil, nil, .degraded), (4, nil, nil, .poor), (0, 8e6, nil, .excellent),
      (0, 7.9e6, nil, .ok), (0, 1.9e6, nil, .degraded), (0, 0.4e6, nil, .poor), (0, nil, 2e6, .excellent),
      (0, nil, 1.9e6, .ok), (0, nil, 0.4e6, .degraded), (0, 1e9, 0.05e6, .poor),
    ] as [(Int, Double?, Double?, KapeLocationRating)])
  func limits(_ lost: Int, _ down: Double?, _ up: Double?, _ rating: KapeLocationRating) throws {
    #expect(try assessment(ms: 10, lost: lost, down: down, up: up).rating == rating)
    #expect(try assessment(ms: 500, lost: lost, down: down, up: up).rating == .poor)
  }

  @Test("best first: by rating, by round trip as far as it is more than noise, by distance, as they came")
  func order() throws {
    let all = [
      try assessment("unknown far", ms: nil, km: 900), try assessment("unknown near", ms: nil, km: 10),
      try assessment("slow transfer", ms: 1, down: 1e6), try assessment("43 far", ms: 43, km: 900),
      try assessment("41 near", ms: 41, km: 10), try assessment("42 nowhere", ms: 42), try assessment("12", ms: 12),
      try assessment("60", ms: 60), try assessment("42 nowhere again", ms: 42),
    ]
    #expect(
      LocationAssessment.sorted(all).map(\.locationId) == [
        "12", "41 near", "43 far", "42 nowhere", "42 nowhere again", "60", "slow transfer", "unknown near",
        "unknown far",
      ])
  }

  @Test("distance along the great circle")
  func distance() {
    let paris = GeographicPoint(latitude: 48.8566, longitude: 2.3522)
    let york = GeographicPoint(latitude: 40.7128, longitude: -74.0060)
    #expect(abs(paris.kilometres(to: york) - 5837) < 5)
    #expect(paris.kilometres(to: paris) == 0)
    let poles = GeographicPoint(latitude: 90, longitude: 0).kilometres(
      to: GeographicPoint(latitude: -90, longitude: 77))
    #expect(abs(poles - 20015) < 1)
    let dateLine = GeographicPoint(latitude: 0, longitude: 179.5)
      .kilometres(to: GeographicPoint(latitude: 0, longitude: -179.5))
    #expect(abs(dateLine - 111.2) < 0.1)
  }
}
