/// A place that a tunnel can go to.
public struct KapeServerLocation: Codable, Hashable, Identifiable, Sendable {
  public var id: String
  public var name: String
  /// ISO 3166-1 alpha-2.
  public var country: String
  public var continent: String
  /// Degrees, north positive.
  public var latitude: Double
  /// Degrees, east positive.
  public var longitude: Double
  /// Of a location that was measured, in `KapeLocationService.smartLocations`; else nil.
  public var rating: KapeLocationRating?

  public init(
    id: String, name: String, country: String, continent: String, latitude: Double, longitude: Double,
    rating: KapeLocationRating? = nil
  ) {
    self.id = id
    self.name = name
    self.country = country
    self.continent = continent
    self.latitude = latitude
    self.longitude = longitude
    self.rating = rating
  }
}
