import Foundation

/// A place on the earth, in degrees.
package struct GeographicPoint: Hashable, Codable, Sendable {
  package var latitude: Double
  package var longitude: Double

  package init(latitude: Double, longitude: Double) {
    self.latitude = latitude
    self.longitude = longitude
  }

  /// Along the great circle, on a sphere with the earth's mean radius.
  package func kilometres(to other: GeographicPoint) -> Double {
    func radians(_ degrees: Double) -> Double { degrees * .pi / 180 }
    let half = (
      latitude: sin(radians(other.latitude - latitude) / 2), longitude: sin(radians(other.longitude - longitude) / 2)
    )
    let haversine =
      half.latitude * half.latitude + cos(radians(latitude)) * cos(radians(other.latitude)) * half.longitude
      * half.longitude
    return 2 * 6371.0088 * asin(min(1, haversine.squareRoot()))
  }
}
