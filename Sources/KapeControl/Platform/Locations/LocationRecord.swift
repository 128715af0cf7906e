package import KapeProtocols

/// A location as the backend tells it, and as the list of them is kept.
package struct LocationRecord: Hashable, Sendable {
  package var id: String
  package var name: String
  package var country: String
  package var continent: String
  package var latitude: Double
  package var longitude: Double
  /// The servers stand elsewhere: the coordinates tell nothing about the way to them.
  package var isGeolocated: Bool
  package var popularityOrder: Int?
  /// Addresses to measure.
  package var testAddresses: [IPAddress]

  package var location: KapeServerLocation {
    KapeServerLocation(
      id: id, name: name, country: country, continent: continent, latitude: latitude, longitude: longitude)
  }
}

extension LocationRecord: Codable {
  private enum Key: String, CodingKey {
    case id, name, continent, latitude, longitude
    case country = "country_code"
    case isGeolocated = "is_geolocated"
    case popularityOrder = "popularity_order"
    case testAddresses = "test_ips"
  }

  package init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: Key.self)
    func wrong(_ key: Key, _ reason: String) -> DecodingError { .wrong(key, reason, values.codingPath) }
    func text(_ key: Key) throws -> String {
      let text = try values.decode(String.self, forKey: key)
      guard !text.isEmpty, text.utf8.count <= 256 else { throw wrong(key, "empty or too long") }
      return text
    }
    func degrees(_ key: Key, _ limit: Double) throws -> Double {
      let number = try values.decode(Double.self, forKey: key)
      guard abs(number) <= limit else { throw wrong(key, "not within -\(Int(limit)) to \(Int(limit))") }
      return number
    }
    id = try text(.id)
    // What the backend's description allows, and fit for a path.
    guard id.utf8.count <= 64 else { throw wrong(.id, "too long") }
    name = try text(.name)
    country = try text(.country)
    guard country.utf8.count == 2, country.utf8.allSatisfy({ (0x41...0x5A).contains($0) }) else {
      throw wrong(.country, "no country of two letters")
    }
    continent = try text(.continent)
    latitude = try degrees(.latitude, 90)
    longitude = try degrees(.longitude, 180)
    isGeolocated = try values.decode(Bool.self, forKey: .isGeolocated)
    popularityOrder = try values.decodeIfPresent(Int.self, forKey: .popularityOrder)
    // One that cannot be measured by this address can be connected to all the same.
    testAddresses = try values.decode([String].self, forKey: .testAddresses).prefix(8).compactMap { IPAddress($0) }
  }

  package func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: Key.self)
    try values.encode(id, forKey: .id)
    try values.encode(name, forKey: .name)
    try values.encode(country, forKey: .country)
    try values.encode(continent, forKey: .continent)
    try values.encode(latitude, forKey: .latitude)
    try values.encode(longitude, forKey: .longitude)
    try values.encode(isGeolocated, forKey: .isGeolocated)
    try values.encode(popularityOrder, forKey: .popularityOrder)
    try values.encode(testAddresses.map(\.description), forKey: .testAddresses)
  }
}
