import KapeProtocols

/// A configuration for people: everything it says, keys hidden but for the public ones.
enum WireGuardSummary {
  static func text(_ configuration: WireGuardConfiguration) -> String {
    var text = section("interface", rows(configuration.interface))
    for peer in configuration.peers { text += "\n" + section("peer: \(peer.publicKey.base64)", rows(peer)) }
    text += "\n" + tunnel(configuration)
    return text
  }

  private static func rows(_ interface: WireGuardConfiguration.Interface) -> [(String, String)] {
    var rows: [(String, String)] = []
    if let privateKey = interface.privateKey, !privateKey.isZero {
      rows.append(("private key", privateKey.description))
      rows.append(("public key", privateKey.publicKey.base64))
    } else {
      rows.append(("private key", "none"))
    }
    rows.append(("listening port", interface.listenPort == 0 ? "any" : "\(interface.listenPort)"))
    if interface.firewallMark != 0 { rows.append(("fwmark", "0x" + String(interface.firewallMark, radix: 16))) }
    rows.append(("addresses", list(interface.addresses)))
    if !interface.dnsServers.isEmpty { rows.append(("name servers", list(interface.dnsServers))) }
    if !interface.dnsSearchDomains.isEmpty {
      rows.append(("search domains", interface.dnsSearchDomains.joined(separator: ", ")))
    }
    rows.append(("MTU", interface.mtu.map { "\($0)" } ?? "from the route to the endpoints"))
    switch interface.table {
    case .automatic: break
    case .off: rows.append(("routes", "none"))
    case .number(let number): rows.append(("routing table", "\(number)"))
    case .name(let name): rows.append(("routing table", name))
    }
    for command in interface.preUp { rows.append(("before up", Redaction.hidingKeys(in: command))) }
    for command in interface.postUp { rows.append(("after up", Redaction.hidingKeys(in: command))) }
    for command in interface.preDown { rows.append(("before down", Redaction.hidingKeys(in: command))) }
    for command in interface.postDown { rows.append(("after down", Redaction.hidingKeys(in: command))) }
    if interface.saveConfig { rows.append(("on down", "the file is written anew")) }
    return rows
  }

  private static func rows(_ peer: WireGuardConfiguration.Peer) -> [(String, String)] {
    var rows: [(String, String)] = []
    if let presharedKey = peer.presharedKey { rows.append(("preshared key", presharedKey.description)) }
    rows.append(("endpoint", peer.endpoint?.description ?? "none; the peer must speak first"))
    rows.append(("allowed ips", list(peer.allowedIPs)))
    if peer.persistentKeepalive != 0 { rows.append(("persistent keepalive", "every \(peer.persistentKeepalive) s")) }
    return rows
  }

  private static func tunnel(_ configuration: WireGuardConfiguration) -> String {
    switch (configuration.isFullTunnel(.ipv4), configuration.isFullTunnel(.ipv6)) {
    case (true, true): "all traffic goes through the tunnel\n"
    case (true, false): "all IPv4 traffic goes through the tunnel; of IPv6 only what is listed\n"
    case (false, true): "all IPv6 traffic goes through the tunnel; of IPv4 only what is listed\n"
    case (false, false): "only traffic to the allowed ips goes through the tunnel\n"
    }
  }

  private static func list(_ values: [some CustomStringConvertible]) -> String {
    values.isEmpty ? "none" : values.map(\.description).joined(separator: ", ")
  }

  private static func section(_ title: String, _ rows: [(String, String)]) -> String {
    title + "\n" + rows.map { "  \($0.0): \($0.1)\n" }.joined()
  }
}
