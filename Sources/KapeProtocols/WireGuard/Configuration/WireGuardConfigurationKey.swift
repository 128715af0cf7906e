/// Every key that a file may have, spelt as the manual pages do.
enum WireGuardConfigurationKey: String, CaseIterable {
  // wg(8), [Interface]
  case privateKey = "PrivateKey"
  case listenPort = "ListenPort"
  case firewallMark = "FwMark"
  // wg-quick(8), [Interface]
  case address = "Address"
  case dns = "DNS"
  case mtu = "MTU"
  case table = "Table"
  case preUp = "PreUp"
  case postUp = "PostUp"
  case preDown = "PreDown"
  case postDown = "PostDown"
  case saveConfig = "SaveConfig"
  // wg(8), [Peer]
  case publicKey = "PublicKey"
  case presharedKey = "PresharedKey"
  case allowedIPs = "AllowedIPs"
  case endpoint = "Endpoint"
  case persistentKeepalive = "PersistentKeepalive"

  enum Section: String, CaseIterable {
    case interface = "Interface"
    case peer = "Peer"
  }

  enum Reader {
    case wg, wgQuick
  }

  var section: Section {
    switch self {
    case .publicKey, .presharedKey, .allowedIPs, .endpoint, .persistentKeepalive: .peer
    case .privateKey, .listenPort, .firewallMark, .address, .dns, .mtu, .table, .preUp, .postUp, .preDown, .postDown,
      .saveConfig:
      .interface
    }
  }

  /// Which of the two programs reads it: wg ignores white space inside a line, wg-quick does not.
  var reader: Reader {
    switch self {
    case .address, .dns, .mtu, .table, .preUp, .postUp, .preDown, .postDown, .saveConfig: .wgQuick
    case .privateKey, .listenPort, .firewallMark, .publicKey, .presharedKey, .allowedIPs, .endpoint,
      .persistentKeepalive:
      .wg
    }
  }

  /// Whether a further line adds to the first. Of the others the last line counts.
  var accumulates: Bool {
    switch self {
    case .address, .dns, .preUp, .postUp, .preDown, .postDown, .allowedIPs: true
    case .privateKey, .listenPort, .firewallMark, .mtu, .table, .saveConfig, .publicKey, .presharedKey, .endpoint,
      .persistentKeepalive:
      false
    }
  }

  init?(_ name: String) {
    guard let key = Self.byLowercasedName[name.lowercased()] else { return nil }
    self = key
  }

  private static let byLowercasedName = Dictionary(
    uniqueKeysWithValues: allCases.map { ($0.rawValue.lowercased(), $0) })

  /// Keys of the AmneziaWG fork, which describe another wire format.
  static func isAmneziaWG(_ name: String) -> Bool {
    amneziaWG.contains(name.lowercased())
  }

  private static let amneziaWG: Set<String> = [
    "jc", "jmin", "jmax", "s1", "s2", "s3", "s4", "h1", "h2", "h3", "h4", "i1", "i2", "i3", "i4", "i5", "j1", "j2",
    "j3",
    "itime",
  ]
}
