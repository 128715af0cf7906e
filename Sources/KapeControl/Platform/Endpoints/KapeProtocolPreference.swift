/// The protocol that somebody wants.
public enum KapeProtocolPreference: String, Codable, CaseIterable, Sendable {
  /// Each in its turn, as the backend has put them; where UDP is blocked, TCP follows in the same round.
  case automatic
  case wireguard
  case lightway
  case openvpn
}

extension KapeProtocolPreference {
  /// The one that it names; nil: any.
  package var only: DiscoveryProtocol? {
    switch self {
    case .automatic: nil
    case .wireguard: .wireguard
    case .lightway: .lightway
    case .openvpn: .openvpn
    }
  }
}
