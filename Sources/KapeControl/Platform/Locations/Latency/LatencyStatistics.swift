/// Round trips to one place.
package struct LatencyStatistics: Hashable, Codable, Sendable {
  package var minimumMs: Double
  package var averageMs: Double
  package var medianMs: Double
  /// Nine of ten took no longer.
  package var p90Ms: Double
  package var answered: Int
  package var lost: Int

  /// nil when nothing was answered.
  package init?(_ samples: [Duration?]) {
    let times = samples.compactMap { $0.map { $0 / .milliseconds(1) } }.sorted()
    guard let first = times.first else { return nil }
    minimumMs = first
    averageMs = times.reduce(0, +) / Double(times.count)
    let middle = times.count / 2
    medianMs = times.count % 2 == 1 ? times[middle] : (times[middle - 1] + times[middle]) / 2
    // The nearest rank.
    p90Ms = times[(times.count * 9 + 9) / 10 - 1]
    answered = times.count
    lost = samples.count - times.count
  }
}
