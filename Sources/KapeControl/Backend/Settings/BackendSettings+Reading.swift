import KapeProtocols

private let day: Int64 = 86_400
private let year: Int64 = 366 * 86_400

extension BackendSettings {
  /// Takes the text of a file of settings. Whatever it leaves out is as `DefaultSettings` has it, except for what a
  /// backend starts with: users, clients, locations, servers and dedicated IPs are those of the file alone.
  /// `listen` takes the place of the file's.
  package init(parsing text: [UInt8], listen override: String? = nil) throws(SettingsError) {
    let json: JSON
    do {
      json = try JSON(parsing: text)
    } catch {
      throw SettingsError(problems: ["not JSON: \(error.reason)"])
    }
    let notes = SettingsObject.Notes()
    let root = SettingsObject(override.map { json.with("listen", .string($0)) } ?? json, at: "", notes)
    listen = root.socketAddress("listen", or: SocketAddress(IPAddress(ipv4: 127, 0, 0, 1), port: 8480))
    tls = root.has("tls") ? Self.tls(root.object("tls")) : nil
    issuer = root.optionalString("issuer")
    if let issuer, !issuer.isEmpty, !Self.isIssuer(issuer) {
      root.problem("issuer", "an http or https URL without query and fragment, and without '/' at its end, is wanted")
    }
    paths = Self.paths(root.object("paths"))
    let tenant = root.string("tenant", or: "kape")
    audience = root.string("audience", or: tenant)
    vpnEntitlement = root.string("vpn_entitlement", or: tenant + ".vpn")
    dedicatedIPEntitlement = root.string("dedicated_ip_entitlement", or: tenant + ".dedicated_ip")
    guests = Self.guests(root.object("guests"), vpnEntitlement)
    clients = root.objects("clients", Self.client)
    lifetimes = Self.lifetimes(root.object("lifetimes"))
    limits = Self.limits(root.object("limits"))
    bodyLimit = Int(root.integer("body_limit", 1024...(1 << 20), or: 64 << 10))
    peers = Self.peers(root.object("peers"))
    tracking = Self.tracking(root.object("tracking"))
    users = root.objects("users", SeedUser.init)
    locations = root.objects("locations", Location.init)
    servers = root.objects("servers", WireGuardServer.init)
    dedicatedIPs = root.objects("dedicated_ips", DedicatedIP.init)
    root.finish()
    checkTogether(root)
    guard notes.problems.isEmpty else { throw SettingsError(problems: notes.problems) }
  }

  /// What only shows when one place is held against another.
  private func checkTogether(_ root: SettingsObject) {
    for (name, values) in [
      ("clients", clients.map(\.id)), ("users", users.map { $0.email.lowercased() }),
      ("locations", locations.map(\.id)), ("servers", servers.map(\.name)), ("dedicated_ips", dedicatedIPs.map(\.ip)),
      ("servers", servers.map(\.socket)),
    ] where Set(values).count != values.count {
      root.problem(name, "two of them are the same: each must have a name, socket or address of its own")
    }
    for location in locations {
      for case .wireGuard(let server) in location.endpoints where !servers.contains(where: { $0.name == server }) {
        root.problem("locations", "\(location.id): there is no server named \(server)")
      }
    }
    for dedicated in dedicatedIPs where !locations.contains(where: { $0.id == dedicated.location }) {
      root.problem("dedicated_ips", "\(dedicated.ip): there is no location named \(dedicated.location)")
    }
    let longest = max(lifetimes.peer, lifetimes.connectionToken)
    if lifetimes.holder < longest {
      root.problem(
        "lifetimes.holder", "must be at least as long as peer and connection_token, or the cap would not hold")
    }
    if tls == nil && !isLoopback(listen.address) {
      root.problem(
        "listen",
        "\(listen.address) can be reached from elsewhere, which takes tls: set \"tls\": {\"names\": [\"HOST\"]}")
    }
    if listen.address.isUnspecified && issuer == nil {
      root.problem("issuer", "is wanted when it listens on every address: https://HOST")
    }
  }

  private static func tls(_ object: SettingsObject) -> TLS {
    defer { object.finish() }
    if object.has("certificate") || object.has("key") {
      return .files(certificate: object.string("certificate"), key: object.string("key"))
    }
    return .own(names: object.strings("names"))
  }

  private static func isIssuer(_ text: String) -> Bool {
    (text.hasPrefix("https://") || text.hasPrefix("http://")) && !text.hasSuffix("/")
      && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !"?#\"<>\\^`{|}".utf8.contains($0) }
  }

  private static func paths(_ object: SettingsObject) -> [Operation: String] {
    var paths: [Operation: String] = [:]
    for operation in Operation.allCases where operation != .signIn {
      let path = object.string(operation.rawValue, or: operation.defaultPath)
      if !path.hasPrefix("/") { object.problem(operation.rawValue, "a path that begins with '/' is wanted") }
      if operation == .endpoints && !path.contains("/{location_id}") {
        object.problem(operation.rawValue, "needs the part {location_id}")
      }
      paths[operation] = path
    }
    paths[.signIn] = paths[.authorize]
    object.finish()
    return paths
  }

  private static func guests(_ object: SettingsObject, _ vpn: String) -> Guests {
    defer { object.finish() }
    return Guests(
      areAllowed: object.bool("allowed", or: true), tier: object.string("tier", or: "guest"),
      entitlements: object.strings("entitlements", or: [vpn]))
  }

  private static func client(_ object: SettingsObject) -> Client {
    let client = Client(id: object.string("id"), redirectURIs: object.strings("redirect_uris"))
    for uri in client.redirectURIs where RedirectURI(uri) == nil {
      object.problem("redirect_uris", "\(uri): an absolute URI without a fragment is wanted")
    }
    return client
  }

  private static func lifetimes(_ object: SettingsObject) -> Lifetimes {
    let usual = Lifetimes()
    defer { object.finish() }
    return Lifetimes(
      form: object.seconds("form", 30...day, or: usual.form),
      code: object.seconds("code", 5...600, or: usual.code),
      identityToken: object.seconds("identity_token", 30...day, or: usual.identityToken),
      refreshToken: object.seconds("refresh_token", 60...(10 * year), or: usual.refreshToken),
      refreshRetry: object.seconds("refresh_retry", 0...300, or: usual.refreshRetry),
      receipt: object.seconds("receipt", 30...(30 * day), or: usual.receipt),
      connectionToken: object.seconds("connection_token", 30...(30 * day), or: usual.connectionToken),
      dedicatedIPToken: object.seconds("dedicated_ip_token", 30...(30 * day), or: usual.dedicatedIPToken),
      signingKey: object.seconds("signing_key", 60...(10 * year), or: usual.signingKey),
      keyOverlap: object.seconds("key_overlap", 30...year, or: usual.keyOverlap),
      peer: object.seconds("peer", 30...year, or: usual.peer),
      holder: object.seconds("holder", 60...(2 * year), or: usual.holder),
      endpoints: object.seconds("endpoints", 0...day, or: usual.endpoints))
  }

  private static func limits(_ object: SettingsObject) -> Limits {
    var limits = Limits(operations: [:])
    func limit(_ name: String, _ usual: RateLimiter.Limit) -> RateLimiter.Limit {
      guard object.has(name) else { return usual }
      let limit = object.object(name)
      defer { limit.finish() }
      return .init(requests: limit.integer("requests", 1...1_000_000), seconds: limit.seconds("per", 1...day))
    }
    for operation in Operation.allCases {
      if let usual = operation.defaultLimit { limits.operations[operation] = limit(operation.rawValue, usual) }
    }
    limits.guests = limit("guests", limits.guests)
    limits.passwords = limit("passwords", limits.passwords)
    object.finish()
    return limits
  }

  private static func peers(_ object: SettingsObject) -> Peers {
    defer { object.finish() }
    return Peers(
      cap: object.integer("cap", 1...1000, or: 10), atCap: object.choice("at_cap", or: .replace),
      interval: object.seconds("interval", 1...3600, or: 10))
  }

  private static func tracking(_ object: SettingsObject) -> Tracking {
    defer { object.finish() }
    return Tracking(
      projectTokens: object.strings("project_tokens", or: []),
      kept: object.seconds("kept", 60...(10 * year), or: 30 * day),
      most: object.integer("most", 1...100_000_000, or: 1_000_000))
  }
}

/// Nobody but this host reaches it.
func isLoopback(_ address: IPAddress) -> Bool {
  address.withUnsafeBytes { bytes in
    address.family == .ipv4 ? bytes[0] == 127 : bytes.dropLast().allSatisfy { $0 == 0 } && bytes[15] == 1
  }
}

extension JSON {
  fileprivate func with(_ name: String, _ value: JSON) -> JSON {
    guard case .object(let members) = self else { return self }
    return .object(members.merging([name: value]) { $1 })
  }
}
