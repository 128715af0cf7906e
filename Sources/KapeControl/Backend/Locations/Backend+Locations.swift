extension Backend {
  func locations(_ request: HTTPRequest) throws -> HTTPResponse {
    let identity = try identity(request)
    try limit(.locations, identity.user)
    return .json(["locations": .array(settings.locations.map(\.json))])
  }

  /// A location's endpoints, in the order of the settings, which is the pecking order.
  func endpoints(_ request: HTTPRequest, _ values: [String: String]) throws -> HTTPResponse {
    let connection = try connectionForDiscovery(request)
    try limit(.endpoints, connection.holders[0])
    guard let query = request.query, query.repeatedName == nil else {
      throw Refusal(400, .invalidRequest, "the query is not percent-encoded text, or has a name twice")
    }
    let wanted = (query["protocols"] ?? "lightway,openvpn,wireguard").split(
      separator: ",", omittingEmptySubsequences: false
    ).map(String.init)
    let known = ["lightway", "openvpn", "wireguard", "proxy"]
    if wanted.contains(where: { !known.contains($0) }) {
      throw Refusal(
        400, .invalidRequest, "protocols must be some of \(known.joined(separator: ",")), with commas between")
    }
    guard let location = settings.locations.first(where: { $0.id == values["location_id"] }) else {
      throw Refusal(404, .unknownLocation, "there is no such location")
    }
    let endpoints = location.endpoints.filter { wanted.contains($0.protocolID) }
    return .json(
      [
        "location_id": .string(location.id), "endpoints": .array(try endpoints.map(json)),
        "max_age": .integer(settings.lifetimes.endpoints),
      ], maxAge: settings.lifetimes.endpoints)
  }

  /// An entitlement that is missing is told as an unfit token where that is the only thing it is shown for.
  private func connectionForDiscovery(_ request: HTTPRequest) throws -> Connection {
    let token = try bearer(request)
    do {
      return try connection(token)
    } catch let refusal as Refusal where refusal.code == .notEntitled {
      throw TokenFault.wrongKind
    }
  }

  func json(_ endpoint: Endpoint) throws -> JSON {
    switch endpoint {
    case .wireGuard(let name):
      guard let server = settings.servers.first(where: { $0.name == name }) else { return .null }
      return [
        "kind": "wireguard", "ip": .string("\(server.ip)"), "port": .integer(Int64(server.port)),
        "auth_ip": .string("\(server.auth.address)"), "auth_port": .integer(Int64(server.auth.port)),
        "cert_dn": .string(server.certDN), "obfuscation": "none",
      ]
    case .openVPN(let endpoint):
      return [
        "kind": "openvpn", "ip": .string("\(endpoint.at.address)"), "port": .integer(Int64(endpoint.at.port)),
        "transport": .string(endpoint.transport.rawValue), "cert_dn": .string(endpoint.certDN),
        "mtu": .integer(endpoint.mtu), "profile": .string(endpoint.profile),
        "ca_certificate": .string(try certificate(endpoint.caFile)),
        "tls_auth_key": .optional(try endpoint.tlsAuthFile.map(text)),
        "xor_value": endpoint.xorValue.map { .integer($0) } ?? .null,
        "obfuscation": endpoint.xorValue == nil ? "none" : "xor",
      ]
    case .lightway(let endpoint): return try json(endpoint)
    case .proxy(let endpoint):
      return [
        "kind": "proxy", "ip": .string("\(endpoint.at.address)"), "port": .integer(Int64(endpoint.at.port)),
        "tls": .bool(endpoint.isTLS), "cert_dn": .string(endpoint.certDN),
        "authentication": .string(endpoint.authentication.rawValue),
      ]
    }
  }

  func json(_ endpoint: Endpoint.Lightway) throws -> JSON {
    [
      "kind": "lightway", "ip": .string("\(endpoint.at.address)"), "port": .integer(Int64(endpoint.at.port)),
      "transport": .string(endpoint.transport.rawValue), "mtu": .integer(endpoint.mtu),
      "cert_dn": .string(endpoint.certDN), "ca_certificate": .string(try certificate(endpoint.caFile)),
      "obfuscation": endpoint.isXor ? "xor" : "none",
    ]
  }

  private func certificate(_ path: String?) throws -> String { try text(path ?? state.file("ca.pem")) }

  private func text(_ path: String) throws -> String { texts[path] ?? "" }
}

extension Location {
  var json: JSON {
    [
      "id": .string(id), "name": .string(name), "country_code": .string(countryCode), "continent": .string(continent),
      "latitude": .number(latitude), "longitude": .number(longitude), "is_geolocated": .bool(isGeolocated),
      "popularity_order": popularityOrder.map { .integer($0) } ?? .null,
      "instance_count_min": .integer(instanceCountMin), "instance_count_max": .integer(instanceCountMax),
      "test_ips": .strings(testIPs),
    ]
  }
}
