import Foundation
import KapeProtocols
import KapeTestSupport
import Testing

@testable import KapePlatform

@Suite("§5.4: what the backend tells of locations") struct LocationsAnswerTests {
  private static let one = """
    {"id": "fr-paris", "name": "Paris", "country_code": "FR", "continent": "Europe", "latitude": 48.85,
     "longitude": 2.35, "is_geolocated": false, "popularity_order": 3, "instance_count_min": 1,
     "instance_count_max": 9, "test_ips": ["192.0.2.1", "2001:db8::1"]}
    """
  private static let other = one.replacingOccurrences(of: "fr-paris", with: "fr-lyon")
    .replacingOccurrences(of: "\"popularity_order\": 3", with: "\"popularity_order\": null")

  private func answer(_ entries: String...) throws(DiscoveryError) -> LocationsAnswer {
    try LocationsAnswer(Data(#"{"locations": [\#(entries.joined(separator: ","))]}"#.utf8))
  }

  @Test("every field, in the backend's order; what is not described is passed over")
  func fields() throws {
    let answer = try answer(Self.one, Self.other)
    #expect(answer.refused == [])
    #expect(answer.locations.map(\.id) == ["fr-paris", "fr-lyon"])
    let first = try #require(answer.locations.first)
    #expect(
      first
        == LocationRecord(
          id: "fr-paris", name: "Paris", country: "FR", continent: "Europe", latitude: 48.85, longitude: 2.35,
          isGeolocated: false, popularityOrder: 3,
          testAddresses: [try address("192.0.2.1"), try address("2001:db8::1")]))
    #expect(answer.locations.last?.popularityOrder == nil)
    #expect(
      first.location
        == KapeServerLocation(
          id: "fr-paris", name: "Paris", country: "FR", continent: "Europe", latitude: 48.85, longitude: 2.35))
    let data = try JSONEncoder().encode(answer.locations)
    #expect(try JSONDecoder().decode([LocationRecord].self, from: data) == answer.locations)
  }

  @Test(
    "an entry that is not as described is left out, and said with its place",
    arguments: [
      ("\"fr-paris\"", "\"\"", "locations[1].id: empty or too long"),
      ("\"fr-paris\"", "\"\(String(repeating: "x", count: 65))\"", "locations[1].id: too long"),
      ("\"fr-paris\"", "7", "locations[1].id: no String"),
      ("\"FR\"", "\"France\"", "locations[1].country_code: no country of two letters"),
      ("\"FR\"", "\"fr\"", "locations[1].country_code: no country of two letters"),
      ("48.85", "90.5", "locations[1].latitude: not within -90 to 90"),
      ("2.35", "-181", "locations[1].longitude: not within -180 to 180"),
      ("2.35", "\"east\"", "locations[1].longitude: no Double"),
      ("\"continent\": \"Europe\", ", "", "locations[1]: continent is missing"),
      ("fr-paris", "fr-lyon", "locations[1].id: it is there twice"),
    ])
  func refused(_ text: String, _ replacement: String, _ said: String) throws {
    #expect(Self.one.contains(text))
    let answer = try answer(Self.other, Self.one.replacingOccurrences(of: text, with: replacement))
    #expect(answer.locations.map(\.id) == ["fr-lyon"])
    #expect(answer.refused == [said])
  }

  @Test("a test address that is none costs the measurement alone")
  func testAddress() throws {
    let answer = try answer(Self.one.replacingOccurrences(of: "192.0.2.1", with: "server.test"))
    #expect(answer.locations.first?.testAddresses == [try address("2001:db8::1")])
  }

  @Test("nothing left of what was told, or no answer at all, is an error; an empty list is none")
  func unusable() throws {
    #expect(try answer().locations == [])
    for text in ["", "[]", "{}", #"{"locations": {}}"#, #"{"locations": [{}]}"#] {
      #expect(throws: DiscoveryError.self, "\(text)") { try LocationsAnswer(Data(text.utf8)) }
    }
  }

  @Test("bytes changed at random never do worse than an error or fewer locations")
  func changedBytes() throws {
    let whole = Array(#"{"locations": [\#(Self.one),\#(Self.other)]}"#.utf8)
    var read = 0
    for seed in 0..<2000 as Range<UInt64> {
      var random = SeededGenerator(seed: seed)
      var bytes = whole
      for _ in 0...random.below(3) { bytes[random.below(bytes.count)] = UInt8(random.below(256)) }
      guard let answer = try? LocationsAnswer(Data(bytes)) else { continue }
      read += 1
      #expect(answer.locations.count + answer.refused.count == 2)
      #expect(answer.locations.allSatisfy { abs($0.latitude) <= 90 && !$0.id.isEmpty })
    }
    #expect(read > 100)
  }
}
