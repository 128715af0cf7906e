import Foundation
import Testing

@testable import KapePlatform

@Suite("§5.4: measurements, network by network") struct SmartLocationCacheTests {
  private let now = Date(timeIntervalSince1970: 1_700_000_000)
  private let home = NetworkFingerprint(
    country: "FR", region: "Europe/Paris", isp: "A", asn: 64496, network: "10.0.0.0/24 by 10.0.0.1", station: "aa")

  private func entry(_ fingerprint: NetworkFingerprint, _ id: String, age: TimeInterval = 60)
    -> SmartLocationCache.Entry
  {
    SmartLocationCache.Entry(
      fingerprint: fingerprint, measuredAt: now - age, isExtended: true,
      assessments: [LocationAssessment(locationId: id)])
  }

  private func with(_ change: (inout NetworkFingerprint) -> Void) -> NetworkFingerprint {
    var fingerprint = home
    change(&fingerprint)
    return fingerprint
  }

  /// One entry for each step of the order, the nearer ones older: it is the match that decides.
  private var all: [SmartLocationCache.Entry] {
    [
      entry(home, "station", age: 600), entry(with { $0.station = "bb" }, "network", age: 500),
      entry(with { $0.network = "other" }, "operator", age: 400), entry(with { $0.isp = "B" }, "region", age: 300),
      entry(with { $0.region = "Europe/Lyon" }, "country", age: 200),
      entry(with { $0.country = "DE" }, "nothing", age: 100),
    ]
  }

  @Test("the match order: all, without the station, operator and region, region, country, anything")
  func matchOrder() throws {
    let names = ["station", "network", "operator", "region", "country", "nothing"]
    for (dropped, match) in NetworkFingerprint.Match.allCases.enumerated() {
      let cache = SmartLocationCache(Array(all.dropFirst(dropped)))
      let found = try #require(cache.best(for: home, at: now))
      #expect(found.match == match)
      #expect(found.entry.assessments.first?.locationId == names[dropped])
    }
    #expect(SmartLocationCache().best(for: home, at: now) == nil)
  }

  @Test("the system number has to be the same for a network, not for its operator and region")
  func systemNumber() {
    let other = with { $0.asn = 64497 }
    #expect(!other.matches(home, .station) && !other.matches(home, .network) && other.matches(home, .operatorOfRegion))
  }

  @Test("what is not known matches nothing by itself")
  func unknown() {
    let nothing = NetworkFingerprint()
    #expect(NetworkFingerprint.Match.allCases.filter { nothing.matches(nothing, $0) } == [.nothing])
    // Without operator and station, as on most machines, the rest is enough.
    let plain = NetworkFingerprint(country: "FR", region: "Europe/Paris", network: "10.0.0.0/24 by 10.0.0.1")
    #expect(plain.matches(plain, .station))
  }

  @Test("of those that match as well, the newest wins")
  func newest() throws {
    let cache = SmartLocationCache([entry(home, "old", age: 900), entry(home, "new", age: 10), entry(home, "middle")])
    #expect(cache.best(for: home, at: now)?.entry.assessments.first?.locationId == "new")
  }

  @Test("30 days, and none of the future")
  func age() {
    let day = 86_400.0
    #expect(SmartLocationCache([entry(home, "x", age: 30 * day - 1)]).best(for: home, at: now) != nil)
    #expect(SmartLocationCache([entry(home, "x", age: 30 * day)]).best(for: home, at: now) == nil)
    #expect(SmartLocationCache([entry(home, "x", age: -1)]).best(for: home, at: now) == nil)
  }

  @Test("one entry a network, the newest 32, none that is too old")
  func insert() throws {
    var cache = SmartLocationCache([entry(home, "old"), entry(with { $0.network = "n" }, "stale", age: 31 * 86_400)])
    cache.insert(entry(home, "new", age: 0), at: now)
    #expect(cache.entries.map(\.assessments.first?.locationId) == ["new"])
    for number in 0..<40 {
      cache.insert(entry(with { $0.network = "n\(number)" }, "\(number)", age: Double(100 - number)), at: now)
    }
    #expect(cache.entries.count == 32)
    #expect(cache.entries.first?.assessments.first?.locationId == "new")
    #expect(cache.entries.last?.assessments.first?.locationId == "9")
  }

  @Test("kept in a file; what cannot be read of it is passed over")
  func file() throws {
    let folder = try ScratchFolder()
    let container = try SharedContainer(group: "g", home: nil) { $0 == "KAPE_STATE_HOME" ? folder.path : nil }
    #expect(SmartLocationCache.load(container) == SmartLocationCache())
    let cache = SmartLocationCache(all)
    try cache.save(container)
    #expect(SmartLocationCache.load(container) == cache)
    #expect(try folder.mode("g/smart-locations.json") == 0o600)
    for text in ["", "{}", "[", "null"] {
      try folder.write("g/smart-locations.json", text)
      #expect(SmartLocationCache.load(container) == SmartLocationCache())
    }
    try folder.write(
      "g/smart-locations.json",
      """
      [7, {}, {"fingerprint": {"country": "FR"}, "measuredAt": "2023-11-14T22:00:00Z", "isExtended": true,
       "assessments": [{"locationId": "fr"}]}]
      """)
    #expect(SmartLocationCache.load(container).entries.map(\.fingerprint.country) == ["FR"])
  }
}

@Suite("Where a machine is") struct TimeZoneGeographyTests {
  private let table = """
    # comment\twith\ttabs
    AD\t+4230+00131\tEurope/Andorra
    US\t+404251-0740023\tAmerica/New_York\tEastern (most areas)
    DE,DK,NO,SE,SJ\t+5230+01322\tEurope/Berlin\tmost of Germany
    XX\t+99+0\tBroken/Place
    """

  @Test("by the place that the time zone is named after, with the first country of its list")
  func zones() throws {
    let berlin = try #require(TimeZoneGeography(zone: "Europe/Berlin", table: table))
    #expect(berlin.country == "DE" && berlin.region == "Europe/Berlin")
    #expect(berlin.point == GeographicPoint(latitude: 52.5, longitude: 13 + 22.0 / 60))
    let york = try #require(TimeZoneGeography(zone: "America/New_York", table: table))
    #expect(abs(york.point.latitude - 40.71416) < 1e-4 && abs(york.point.longitude + 74.00639) < 1e-4)
    for zone in ["Etc/UTC", "Broken/Place", "", "Europe"] {
      #expect(TimeZoneGeography(zone: zone, table: table) == nil, "\(zone)")
    }
  }

  @Test(
    "coordinates that are none", arguments: ["", "+", "+4230", "4230+00131", "+4230+131", "+42a0+00131", "+9930+00131"])
  func points(_ text: String) {
    #expect(TimeZoneGeography.point(text) == nil)
  }

  @Test("arp(7): the hardware address of the gateway, where it is known")
  func station() {
    let table = """
      IP address       HW type     Flags       HW address            Mask     Device
      192.0.2.1        0x1         0x2         02:fc:00:00:00:05     *        eth0
      192.0.2.2        0x1         0x0         00:00:00:00:00:00     *        eth0
      """
    #expect(NetworkFingerprint.hardwareAddress(of: "192.0.2.1", table: table) == "02:fc:00:00:00:05")
    #expect(NetworkFingerprint.hardwareAddress(of: "192.0.2.2", table: table) == nil)
    #expect(NetworkFingerprint.hardwareAddress(of: "192.0.2.3", table: table) == nil)
    #expect(NetworkFingerprint.hardwareAddress(of: "192.0.2.1", table: "") == nil)
  }

  @Test("this machine's network can be asked for, and is the same when asked again")
  func present() {
    #expect(LocalNetwork.present() == LocalNetwork.present())
  }
}
