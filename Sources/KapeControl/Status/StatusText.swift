internal import KapeProtocols

/// Reports for people, in the manner of `wg show`.
package enum StatusText {
  package static func text(_ reports: [InterfaceReport], now: UInt64) -> String {
    reports.map { text($0, now: now) }.joined(separator: "\n")
  }

  private static func text(_ report: InterfaceReport, now: UInt64) -> String {
    var text = section("interface: \(report.name)", rows(report, now))
    for peer in report.peers { text += "\n" + section("peer: \(peer.publicKey.base64)", rows(peer, now)) }
    if !report.counters.isEmpty {
      text += "\n" + section("counters", report.counters.map { ($0.name.lowercased(), "\($0.value)") })
    }
    if !report.events.isEmpty {
      text += "\n" + section("events", report.events.suffix(8).map { (Timestamp.text($0.time), $0.text) })
    }
    for warning in report.warnings { text += "\nwarning: \(warning)\n" }
    return text
  }

  private static func rows(_ report: InterfaceReport, _ now: UInt64) -> [(String, String)] {
    var rows: [(String, String)] = []
    var program = report.program
    if report.process > 0 { program += ", process \(report.process)" }
    if let file = report.configurationFile { program += ", \(file)" }
    rows.append(("run by", program))
    if report.upSince > 0 { rows.append(("up since", Timestamp.text(report.upSince))) }
    if let key = report.publicKey { rows.append(("public key", key.base64)) }
    if report.listenPort != 0 { rows.append(("listening port", "\(report.listenPort)")) }
    if report.firewallMark != 0 { rows.append(("fwmark", "0x" + String(report.firewallMark, radix: 16))) }
    if let settings = report.settings { rows += self.rows(settings) }
    if let backend = report.backend { rows.append(("backend", backend)) }
    if let threads = report.threads, threads > 1 {
      rows.append(("threads", report.queues == 1 ? "\(threads), one a direction" : "\(threads)"))
    }
    if !report.fallbacks.isEmpty { rows.append(("fallbacks", report.fallbacks.joined(separator: ", "))) }
    if let traffic = report.traffic {
      rows.append(("inside", "\(count(traffic.insideReceived)) received, \(count(traffic.insideSent)) sent"))
      rows.append(("on the wire", "\(count(traffic.wireReceived)) received, \(count(traffic.wireSent)) sent"))
    }
    return rows
  }

  private static func rows(_ settings: AppliedSettings) -> [(String, String)] {
    var rows = [("addresses", list(settings.addresses)), ("MTU", "\(settings.mtu)")]
    if !settings.routes.isEmpty {
      rows.append(
        (
          "routes",
          list(
            settings.routes.map {
              $0.table == Route.mainTable ? "\($0.destination)" : "\($0.destination) in table \($0.table)"
            })
        ))
    }
    switch (settings.fullTunnels.contains(.ipv4), settings.fullTunnels.contains(.ipv6)) {
    case (true, true): rows.append(("full tunnel", "IPv4 and IPv6"))
    case (true, false): rows.append(("full tunnel", "IPv4 only; IPv6 goes on outside the tunnel"))
    case (false, true): rows.append(("full tunnel", "IPv6 only; IPv4 goes on outside the tunnel"))
    case (false, false): break
    }
    if !settings.guardTables.isEmpty { rows.append(("nftables", list(settings.guardTables))) }
    if let method = settings.nameServiceMethod {
      var text = settings.nameServers.isEmpty ? "" : list(settings.nameServers) + " "
      if !settings.searchDomains.isEmpty { text += "search " + settings.searchDomains.joined(separator: " ") + " " }
      rows.append(("name servers", text + "(by \(method))"))
    }
    return rows
  }

  private static func rows(_ peer: InterfaceReport.Peer, _ now: UInt64) -> [(String, String)] {
    var rows: [(String, String)] = []
    if peer.hasPresharedKey { rows.append(("preshared key", "(hidden)")) }
    if let endpoint = peer.endpoint {
      rows.append(("endpoint", "\(endpoint)" + (peer.endpointName.map { " (\($0))" } ?? "")))
    } else if let name = peer.endpointName {
      rows.append(("endpoint", "not known (\(name))"))
    }
    rows.append(("allowed ips", peer.allowedIPs.isEmpty ? "(none)" : list(peer.allowedIPs)))
    if peer.latestHandshake > 0 {
      let age = now > peer.latestHandshake ? now - peer.latestHandshake : 0
      rows.append(("latest handshake", duration(age / 1_000_000_000) + " ago"))
    }
    if peer.receivedBytes + peer.sentBytes > 0 {
      rows.append(("transfer", "\(size(peer.receivedBytes)) received, \(size(peer.sentBytes)) sent"))
    }
    if let received = peer.insideReceivedBytes, let sent = peer.insideSentBytes, received + sent > 0 {
      rows.append(("transfer inside", "\(size(received)) received, \(size(sent)) sent"))
    }
    if let received = peer.receivedRate, let sent = peer.sentRate {
      rows.append(("rate", "\(size(received))/s received, \(size(sent))/s sent"))
    }
    if peer.persistentKeepalive != 0 { rows.append(("persistent keepalive", "every \(peer.persistentKeepalive) s")) }
    return rows
  }

  private static func count(_ count: InterfaceReport.Traffic.Count) -> String {
    "\(size(count.bytes)) in \(count.packets) packets"
  }

  /// 0 B, 1023 B, 1.50 KiB, 12.00 GiB.
  package static func size(_ bytes: UInt64) -> String {
    var unit = 0
    var divisor: UInt64 = 1
    while unit < 5, bytes / divisor >= 1024 {
      divisor *= 1024
      unit += 1
    }
    if unit == 0 { return "\(bytes) B" }
    let hundredths = bytes / divisor * 100 + bytes % divisor * 100 / divisor
    let fraction = hundredths % 100
    return
      "\(hundredths / 100).\(fraction < 10 ? "0" : "")\(fraction) \(["B", "KiB", "MiB", "GiB", "TiB", "PiB"][unit])"
  }

  /// "2 d 3 h", "5 min 1 s": the two largest parts.
  package static func duration(_ seconds: UInt64) -> String {
    var rest = seconds
    var parts: [String] = []
    for (unit, length) in [("d", 86400), ("h", 3600), ("min", 60), ("s", 1)] as [(String, UInt64)] {
      if rest >= length || (unit == "s" && parts.isEmpty) { parts.append("\(rest / length) \(unit)") }
      rest %= length
    }
    return parts.prefix(2).joined(separator: " ")
  }

  private static func list(_ values: some Sequence<some CustomStringConvertible>) -> String {
    values.map(\.description).joined(separator: ", ")
  }

  private static func section(_ title: String, _ rows: [(String, String)]) -> String {
    title + "\n" + rows.map { "  \($0.0): \($0.1)\n" }.joined()
  }
}
