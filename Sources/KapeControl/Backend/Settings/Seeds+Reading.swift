import KapeControl
import KapeProtocols

private let centuries: ClosedRange<Int64> = (-200 * 366 * 86_400)...(200 * 366 * 86_400)

extension SeedUser {
  init(_ object: SettingsObject) {
    email = object.string("email")
    name = object.string("name", or: email.prefix { $0 != "@" }.description)
    subscriptions = object.objects("subscriptions", SeedSubscription.init)
    if email.utf8.count > 254 || email.split(separator: "@").count != 2 || email.contains(" ") {
      object.problem("email", "an e-mail address is wanted")
    }
  }
}

extension SeedSubscription {
  init(_ object: SettingsObject) {
    status = object.choice("status", or: .active)
    source = object.string("source", or: "web")
    tier = object.string("tier", or: "premium")
    termEndsIn = object.optionalSeconds("term_ends_in", centuries)
    nextBillingIn = object.optionalSeconds("next_billing_in", centuries)
    cancelledIn = object.optionalSeconds("cancelled_in", centuries)
    if object.has("billing_period") {
      let period = object.object("billing_period")
      billing = BillingPeriod(unit: period.string("unit"), count: period.integer("count", 1...1000))
      period.finish()
    } else {
      billing = nil
    }
    lastAutoBillPaymentFailed = object.bool("last_auto_bill_payment_failed", or: false)
    isBusiness = object.bool("is_business", or: false)
    entitlements = object.strings("entitlements", or: [])
  }
}

extension Location {
  init(_ object: SettingsObject) {
    id = object.string("id")
    name = object.string("name")
    countryCode = object.string("country_code")
    continent = object.string("continent")
    latitude = object.number("latitude", -90...90)
    longitude = object.number("longitude", -180...180)
    isGeolocated = object.bool("is_geolocated", or: false)
    popularityOrder = object.optionalInteger("popularity_order", 1...1_000_000)
    testIPs = object.strings("test_ips", or: [])
    endpoints = object.objects("endpoints", Endpoint.init)
    let count = Int64(endpoints.count)
    instanceCountMin = object.integer("instance_count_min", 0...1_000_000, or: count)
    instanceCountMax = object.integer("instance_count_max", 0...1_000_000, or: count)
    if id.utf8.count > 64 || id.contains("/") {
      object.problem("id", "at most 64 bytes without '/' are wanted")
    }
    if countryCode.utf8.count != 2 || !countryCode.utf8.allSatisfy({ (0x41...0x5A).contains($0) }) {
      object.problem("country_code", "two capital letters (ISO 3166) are wanted")
    }
    for address in testIPs where IPAddress(address) == nil {
      object.problem("test_ips", "'\(address)' is no IP address")
    }
  }
}

extension Endpoint {
  init(_ object: SettingsObject) {
    switch object.string("kind") {
    case "wireguard": self = .wireGuard(server: object.string("server"))
    case "openvpn": self = .openVPN(OpenVPN(object))
    case "lightway": self = .lightway(Lightway(object))
    case "proxy": self = .proxy(Proxy(object))
    default:
      object.problem("kind", "wireguard, openvpn, lightway or proxy is wanted")
      self = .wireGuard(server: "")
    }
  }
}

extension Endpoint.OpenVPN {
  init(_ object: SettingsObject) {
    at = object.socketAddress("at")
    transport = object.choice("transport", or: .udp)
    certDN = object.string("cert_dn")
    mtu = object.integer("mtu", 576...65_535, or: 1420)
    profile = object.string("profile", or: "cipher AES-256-GCM\nauth SHA256")
    caFile = object.optionalString("ca_file")
    tlsAuthFile = object.optionalString("tls_auth_file")
    xorValue = object.optionalInteger("xor_value", 0...255)
  }
}

extension Endpoint.Lightway {
  init(_ object: SettingsObject) {
    at = object.socketAddress("at")
    transport = object.choice("transport", or: .udp)
    certDN = object.string("cert_dn")
    mtu = object.integer("mtu", 576...65_535, or: 1350)
    caFile = object.optionalString("ca_file")
    isXor = object.bool("xor", or: false)
  }
}

extension Endpoint.Proxy {
  init(_ object: SettingsObject) {
    at = object.socketAddress("at")
    isTLS = object.bool("tls", or: true)
    certDN = object.string("cert_dn")
    authentication = object.choice("authentication", or: .token)
  }
}

extension WireGuardServer {
  init(_ object: SettingsObject) {
    name = object.string("name")
    let interface = object.optionalString("interface")
    socket = object.string("socket", or: interface.map { ConfigurationProtocolClient.path(of: $0) })
    ip = object.address("ip")
    port = UInt16(object.integer("port", 1...65_535))
    auth = object.socketAddress("auth")
    listen = object.optionalSocketAddress("listen")
    certDN = object.string("cert_dn", or: name)
    let text = object.string("address")
    let network = TunnelNetwork(text)
    if network == nil {
      object.problem(
        "address", "the server's IPv4 address in the tunnel with a network of 8 to 30 bits is wanted: 10.64.0.1/16")
    }
    self.network = network ?? TunnelNetwork(server: 0, prefixLength: 30)
    dnsServers = object.strings("dns_servers", or: []).compactMap { text in
      let address = IPAddress(text)
      if address == nil { object.problem("dns_servers", "'\(text)' is no IP address") }
      return address
    }
    if certDN.utf8.count > 64 { object.problem("cert_dn", "a common name has at most 64 bytes") }
  }
}

extension DedicatedIP {
  init(_ object: SettingsObject) {
    ip = "\(object.address("ip"))"
    location = object.string("location")
    endsIn = object.seconds("ends_in", centuries)
    isUnderMaintenance = object.bool("under_maintenance", or: false)
    let all = object.objects("endpoints", Endpoint.init)
    endpoints = all.compactMap { if case .lightway(let endpoint) = $0 { endpoint } else { nil } }
    if endpoints.isEmpty || endpoints.count != all.count {
      object.problem("endpoints", "at least one, of kind lightway and no other, is wanted")
    }
  }
}
