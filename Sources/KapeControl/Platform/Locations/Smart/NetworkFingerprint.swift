/// What tells the network that a machine is in from others, as far as it is known.
///
/// On Linux nobody says where the machine is or which operator it has: country and region are those of the time zone, and
/// operator and system number are not known. A network is its gateway with the prefix around this machine's address, a
/// station the gateway's hardware address (which stands for an access point's here).
package struct NetworkFingerprint: Hashable, Codable, Sendable {
  package var country: String?
  package var region: String?
  package var isp: String?
  package var asn: Int?
  package var network: String?
  package var station: String?

  package init(
    country: String? = nil, region: String? = nil, isp: String? = nil, asn: Int? = nil, network: String? = nil,
    station: String? = nil
  ) {
    self.country = country
    self.region = region
    self.isp = isp
    self.asn = asn
    self.network = network
    self.station = station
  }

  /// How much of it has to be the same for an earlier measurement to stand for one of now, the most first.
  package enum Match: Int, CaseIterable, Comparable, Sendable {
    case station, network, operatorOfRegion, region, country, nothing

    package static func < (one: Self, other: Self) -> Bool { one.rawValue < other.rawValue }
  }

  package func matches(_ other: NetworkFingerprint, _ match: Match) -> Bool {
    switch match {
    case .station: matches(other, .network) && station == other.station
    case .network:
      network != nil && network == other.network && country == other.country && region == other.region
        && isp == other.isp && asn == other.asn
    case .operatorOfRegion: matches(other, .region) && isp == other.isp
    case .region: matches(other, .country) && region != nil && region == other.region
    case .country: country != nil && country == other.country
    case .nothing: true
    }
  }
}
