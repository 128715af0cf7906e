import NetworkExtension

/// Options of a start, or of a message, as words: `NAME=VALUE,VALUE;NAME=…`.
struct EchoOptions {
  private var values: [String: [String]]

  init(_ options: [String: NSObject]?) { self.init(text: (options?["words"] as? NSString)?.description ?? "") }

  init(text: String) {
    values = [
      "addresses": ["10.77.0.2/24", "fd77::2/64"], "included": ["10.99.0.0/16", "fd99::/64"], "mtu": ["1380"],
    ]
    for option in text.split(separator: ";") {
      let parts = option.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
      values[parts[0]] = parts.count > 1 ? parts[1].split(separator: ",").map(String.init) : []
    }
  }

  func has(_ name: String) -> Bool { values[name] != nil }

  private func list(_ name: String, _ colon: Bool) -> [(String, Int)] {
    (values[name] ?? []).filter { $0.contains(":") == colon }.map { text in
      let parts = text.split(separator: "/")
      return (String(parts[0]), parts.count > 1 ? Int(parts[1]) ?? -1 : colon ? 128 : 32)
    }
  }

  private func mask(_ length: Int) -> String {
    let bits = length == 0 ? 0 : UInt32.max << UInt32(32 - length)
    return [24, 16, 8, 0].map { "\(bits >> UInt32($0) & 255)" }.joined(separator: ".")
  }

  var settings: NEPacketTunnelNetworkSettings {
    let settings = NEPacketTunnelNetworkSettings(tunnelRemoteAddress: "192.0.2.2")
    let ipv4 = list("addresses", false)
    if !ipv4.isEmpty {
      let made = NEIPv4Settings(addresses: ipv4.map(\.0), subnetMasks: ipv4.map { mask($0.1) })
      made.includedRoutes = list("included", false).map {
        NEIPv4Route(destinationAddress: $0.0, subnetMask: mask($0.1))
      }
      made.excludedRoutes = list("excluded", false).map {
        NEIPv4Route(destinationAddress: $0.0, subnetMask: mask($0.1))
      }
      settings.ipv4Settings = made
    }
    let ipv6 = list("addresses", true)
    if !ipv6.isEmpty {
      let made = NEIPv6Settings(addresses: ipv6.map(\.0), networkPrefixLengths: ipv6.map { NSNumber(value: $0.1) })
      made.includedRoutes = list("included", true).map {
        NEIPv6Route(destinationAddress: $0.0, networkPrefixLength: NSNumber(value: $0.1))
      }
      made.excludedRoutes = list("excluded", true).map {
        NEIPv6Route(destinationAddress: $0.0, networkPrefixLength: NSNumber(value: $0.1))
      }
      settings.ipv6Settings = made
    }
    if let servers = values["dns"] {
      settings.dnsSettings = NEDNSSettings(servers: servers)
      settings.dnsSettings?.searchDomains = values["search"]
      settings.dnsSettings?.matchDomains = values["match"]
    }
    settings.mtu = values["mtu"]?.first.flatMap { Int($0) }.map { NSNumber(value: $0) }
    return settings
  }
}
