package import Foundation

/// The location of `KapeConnectionMode.auto`: the best-rated entry of what was measured, else the first of the list. It
/// never measures or fetches.
package enum AutomaticLocation {
  /// nil: there is neither.
  package static func choose(
    list: [LocationRecord], cache: SmartLocationCache, fingerprint: NetworkFingerprint, now: Date
  ) -> String? {
    let offered = Set(list.map(\.id))
    let measured = (cache.best(for: fingerprint, at: now)?.entry.assessments ?? []).first { assessment in
      // One that did not answer is no better than any other; one that is gone cannot be connected to.
      assessment.rating > .unknown && (offered.isEmpty || offered.contains(assessment.locationId))
    }
    return measured?.locationId ?? list.first?.id
  }

  /// Of what is in the group's folder.
  package static func choose(
    _ container: SharedContainer, source: String, fingerprint: NetworkFingerprint, now: Date
  ) -> String? {
    choose(
      list: LocationList.load(container, source: source)?.locations ?? [], cache: SmartLocationCache.load(container),
      fingerprint: fingerprint, now: now)
  }
}
