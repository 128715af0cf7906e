internal import KapeProtocols

extension TunnelSettings {
  private static let mostAddresses = 64
  private static let mostRoutes = 4096
  private static let mostServers = 16
  private static let mostDomains = 64
  /// The largest MTU that an interface may have.
  private static let largestMTU: UInt64 = 65_535

  package var json: JSONValue {
    var members: [JSONValue.Member] = [
      .init("addresses", .strings(addresses)),
      .init("included", .strings(includedRoutes)),
      .init("excluded", .strings(excludedRoutes)),
      .init("servers", .strings(nameServers)),
      .init("search", .strings(searchDomains)),
    ]
    if let matchDomains { members.append(.init("match", .strings(matchDomains))) }
    if let mtu { members.append(.init("mtu", .number(mtu))) }
    if let proxies { members.append(.init("proxies", proxies.json)) }
    if !remoteAddress.isEmpty { members.append(.init("remote", .string(remoteAddress))) }
    return .object(members)
  }

  /// Strict: a member that is not of the settings is a fault, since who sends it means something by it.
  package init(_ value: JSONValue) throws(JSONFields.Fault) {
    self.init()
    var fields = try JSONFields(value, "settings")
    addresses = try fields.texts("addresses", limit: Self.mostAddresses, "ADDRESS/LENGTH") { InterfaceAddress($0) }
    includedRoutes = try fields.texts("included", limit: Self.mostRoutes, "ADDRESS/LENGTH") { IPPrefix($0) }
    excludedRoutes = try fields.texts("excluded", limit: Self.mostRoutes, "ADDRESS/LENGTH") { IPPrefix($0) }
    nameServers = try fields.texts("servers", limit: Self.mostServers, "an address") {
      ScopedAddress(text: Array($0.utf8).span.bytes)
    }
    searchDomains = try fields.texts("search", limit: Self.mostDomains, "a domain name", DomainName.checked)
    if let match = fields.value("match") {
      var inner = try JSONFields(.object([.init("match", match)]), "settings")
      matchDomains = try inner.texts("match", limit: Self.mostDomains, "a domain name", DomainName.checked)
    }
    mtu = try fields.optionalUnsigned("mtu", limit: Self.largestMTU).map { UInt32($0) }
    if var proxies = try fields.object("proxies") { self.proxies = try TunnelProxies(&proxies) }
    remoteAddress = try fields.optionalString("remote", limit: 255) ?? ""
    try fields.end()
  }
}

extension TunnelProxies {
  fileprivate var json: JSONValue {
    var members: [JSONValue.Member] = []
    if let http { members.append(.init("http", http.json)) }
    if let https { members.append(.init("https", https.json)) }
    if let scriptURL { members.append(.init("script", .string(scriptURL))) }
    if !exceptions.isEmpty { members.append(.init("exceptions", .strings(exceptions))) }
    return .object(members)
  }

  fileprivate init(_ fields: inout JSONFields) throws(JSONFields.Fault) {
    self.init()
    if var server = try fields.object("http") { http = try Server(&server) }
    if var server = try fields.object("https") { https = try Server(&server) }
    scriptURL = try fields.optionalString("script", limit: 2048)
    exceptions = try fields.texts("exceptions", limit: 256, "a text") { $0 }
    try fields.end()
  }
}

extension TunnelProxies.Server {
  fileprivate var json: JSONValue {
    .object([.init("host", .string(host)), .init("port", .number(port))])
  }

  fileprivate init(_ fields: inout JSONFields) throws(JSONFields.Fault) {
    self.init(
      host: try fields.string("host", limit: 255), port: UInt16(try fields.unsigned("port", limit: 65_535)))
    try fields.end()
  }
}

/// Names that go into resolv.conf and to other programs: only what a domain name can be (RFC 1123, section 2.1, and the
/// underscore), so that nothing else is said by way of one.
enum DomainName {
  /// Without the dot at its end; nil when it is none.
  static func checked(_ text: String) -> String? {
    let name = text.hasSuffix(".") ? text.dropLast() : text[...]
    guard !name.isEmpty, name.utf8.count <= 253 else { return nil }
    for label in name.split(separator: ".", omittingEmptySubsequences: false) {
      guard (1...63).contains(label.utf8.count), label.utf8.allSatisfy(isLabelByte), label.first != "-" else {
        return nil
      }
    }
    return String(name)
  }

  private static func isLabelByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
      true
    default: false
    }
  }
}
