import Foundation

/// Where a machine roughly is, by its time zone: the place that the zone is named after.
package struct TimeZoneGeography: Hashable, Sendable {
  package var country: String
  /// The zone's name: `Europe/Paris`.
  package var region: String
  package var point: GeographicPoint

  /// What the file `zone1970.tab` of the time zone database says of a zone; nil for one without a place (UTC).
  package init?(zone: String, table: String) {
    for line in table.split(separator: "\n") where !line.hasPrefix("#") {
      let columns = line.split(separator: "\t", omittingEmptySubsequences: false)
      guard columns.count >= 3, columns[2] == zone else { continue }
      guard let country = columns[0].split(separator: ",").first, let point = Self.point(columns[1]) else { return nil }
      self.country = String(country)
      region = zone
      self.point = point
      return
    }
    return nil
  }

  /// Of this machine, now.
  package init?() {
    guard let zone = Self.zone, let table = try? String(contentsOfFile: Self.folder + "/zone1970.tab", encoding: .utf8)
    else { return nil }
    self.init(zone: zone, table: table)
  }

  private static let folder = "/usr/share/zoneinfo"

  /// The name is in the link's target.
  private static var zone: String? {
    guard let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "/etc/localtime"),
      let range = target.range(of: "zoneinfo/")
    else { return nil }
    return String(target[range.upperBound...])
  }

  /// ISO 6709: ±DDMM±DDDMM or ±DDMMSS±DDDMMSS.
  static func point(_ text: some StringProtocol) -> GeographicPoint? {
    let signs = text.indices.filter { "+-".contains(text[$0]) }
    guard signs.count == 2, signs[0] == text.startIndex,
      let latitude = degrees(text[signs[0]..<signs[1]], digits: 2),
      let longitude = degrees(text[signs[1]...], digits: 3), abs(latitude) <= 90, abs(longitude) <= 180
    else { return nil }
    return GeographicPoint(latitude: latitude, longitude: longitude)
  }

  private static func degrees(_ text: some StringProtocol, digits: Int) -> Double? {
    let figures = text.dropFirst()
    guard figures.allSatisfy({ $0.isASCII && $0.isNumber }), [digits + 2, digits + 4].contains(figures.count) else {
      return nil
    }
    func number(_ from: Int, _ count: Int) -> Double { Double(String(figures.dropFirst(from).prefix(count))) ?? 0 }
    let value = number(0, digits) + number(digits, 2) / 60 + number(digits + 2, 2) / 3600
    return text.hasPrefix("-") ? -value : value
  }
}
