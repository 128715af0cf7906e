internal import KapeProtocols

/// The machine-readable form of reports. Its description is docs/status.schema.json; `version` changes with it.
package enum StatusJSON {
  package static let version: UInt64 = 1

  /// `interfaces` are texts of `interface`: each comes from the process that runs it.
  package static func document(_ interfaces: [String], at time: UInt64) -> JSONValue {
    .object([
      .init("version", .unsigned(version)), .init("generated_at", .string(Timestamp.text(time))),
      .init("interfaces", .array(interfaces.map { .verbatim($0) })),
    ])
  }

  /// One element of the document's list.
  package static func text(_ report: InterfaceReport) -> String { interface(report).text(indent: "    ") }

  static func interface(_ report: InterfaceReport) -> JSONValue {
    .object([
      .init("name", .string(report.name)), .init("protocol", .string("wireguard")),
      .init("program", .string(report.program)),
      .init("process_id", report.process > 0 ? .unsigned(UInt64(report.process)) : .null),
      .init("configuration_file", .optional(report.configurationFile)),
      .init("up_since", time(report.upSince)), .init("public_key", .optional(report.publicKey)),
      .init("listen_port", .number(report.listenPort)), .init("fwmark", .number(report.firewallMark)),
      .init("backend", .optional(report.backend)), .init("fallbacks", .strings(report.fallbacks)),
      .init("threads", report.threads.map { .number(UInt32($0)) } ?? .null),
      .init("queues", report.queues.map { .number(UInt32($0)) } ?? .null),
      .init("settings", report.settings.map(settings) ?? .null), .init("peers", .array(report.peers.map(peer))),
      .init("traffic", report.traffic.map(traffic) ?? .null),
      .init("counters", .object(report.counters.map { .init($0.name.lowercased(), .unsigned($0.value)) })),
      .init(
        "events",
        .array(report.events.map { .object([.init("at", time($0.time)), .init("text", .string($0.text))]) })),
      .init("warnings", .strings(report.warnings)),
    ])
  }

  private static func time(_ nanoseconds: UInt64) -> JSONValue {
    nanoseconds == 0 ? .null : .string(Timestamp.text(nanoseconds))
  }

  private static func settings(_ settings: AppliedSettings) -> JSONValue {
    .object([
      .init("addresses", .strings(settings.addresses)), .init("mtu_bytes", .number(settings.mtu)),
      .init(
        "routes",
        .array(
          settings.routes.map {
            .object([.init("destination", .string("\($0.destination)")), .init("table", .number($0.table))])
          })), .init("rules", .array(settings.rules.map(rule))),
      .init(
        "full_tunnel",
        .object([
          .init("ipv4", .bool(settings.fullTunnels.contains(.ipv4))),
          .init("ipv6", .bool(settings.fullTunnels.contains(.ipv6))),
          .init("table", settings.table.map { .number($0) } ?? .null),
        ])), .init("nftables_tables", .strings(settings.guardTables)),
      .init(
        "name_service",
        .object([
          .init("method", .optional(settings.nameServiceMethod)), .init("servers", .strings(settings.nameServers)),
          .init("search_domains", .strings(settings.searchDomains)),
        ])),
    ])
  }

  private static func rule(_ rule: PolicyRule) -> JSONValue {
    .object([
      .init("family", .string(rule.family == .ipv4 ? "ipv4" : "ipv6")), .init("priority", .number(rule.priority)),
      .init("table", .number(rule.table)), .init("fwmark", rule.mark.map { .number($0) } ?? .null),
      .init("not", .bool(rule.isInverted)),
      .init("suppress_prefix_length", rule.suppressPrefixLength.map { .number($0) } ?? .null),
    ])
  }

  private static func peer(_ peer: InterfaceReport.Peer) -> JSONValue {
    func number(_ value: UInt64?) -> JSONValue { value.map { .unsigned($0) } ?? .null }
    return .object([
      .init("public_key", .string(peer.publicKey.base64)), .init("has_preshared_key", .bool(peer.hasPresharedKey)),
      .init("endpoint", .optional(peer.endpoint)), .init("endpoint_name", .optional(peer.endpointName)),
      .init("allowed_ips", .strings(peer.allowedIPs)),
      .init("persistent_keepalive_ns", .unsigned(UInt64(peer.persistentKeepalive) * 1_000_000_000)),
      .init("latest_handshake_at", time(peer.latestHandshake)),
      .init("has_session", peer.hasSession.map { .bool($0) } ?? .null),
      .init("received_bytes", .unsigned(peer.receivedBytes)), .init("sent_bytes", .unsigned(peer.sentBytes)),
      .init("inside_received_bytes", number(peer.insideReceivedBytes)),
      .init("inside_sent_bytes", number(peer.insideSentBytes)),
      .init("received_bytes_per_second", number(peer.receivedRate)),
      .init("sent_bytes_per_second", number(peer.sentRate)),
    ])
  }

  private static func traffic(_ traffic: InterfaceReport.Traffic) -> JSONValue {
    func count(_ count: InterfaceReport.Traffic.Count) -> JSONValue {
      .object([.init("packets", .unsigned(count.packets)), .init("bytes", .unsigned(count.bytes))])
    }
    return .object([
      .init("inside_received", count(traffic.insideReceived)), .init("inside_sent", count(traffic.insideSent)),
      .init("wire_received", count(traffic.wireReceived)), .init("wire_sent", count(traffic.wireSent)),
    ])
  }
}
