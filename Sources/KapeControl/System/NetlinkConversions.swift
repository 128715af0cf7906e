internal import CKapeDataPlane
internal import KapeProtocols

extension IPAddress.Family {
  var forC: kdp_family { self == .ipv4 ? KDP_FAMILY_IPV4 : KDP_FAMILY_IPV6 }
}

extension IPAddress {
  /// nil for KDP_FAMILY_NONE.
  init?(_ address: kdp_address) {
    let size = Int32(address.family) == 4 ? 4 : Int32(address.family) == 6 ? 16 : 0
    guard let made = Swift.withUnsafeBytes(of: address.bytes, { IPAddress(bytes: $0.bytes.extracting(0..<size)) })
    else { return nil }
    self = made
  }
}

extension kdp_address {
  init(_ address: IPAddress, port: UInt16, scope: UInt32) {
    self.init()
    family = address.family.rawValue
    self.port = port
    self.scope = scope
    withUnsafeMutableBytes(of: &bytes) { target in
      address.withUnsafeBytes { target.copyBytes(from: $0) }
    }
  }
}

extension kdp_prefix {
  init(_ address: IPAddress, length: Int) {
    self.init()
    family = address.family.rawValue
    self.length = UInt8(length)
    withUnsafeMutableBytes(of: &bytes) { target in
      address.withUnsafeBytes { target.copyBytes(from: $0) }
    }
  }

  fileprivate var ipAddress: IPAddress? {
    let size = Int32(family) == 4 ? 4 : Int32(family) == 6 ? 16 : 0
    return withUnsafeBytes(of: bytes) { IPAddress(bytes: $0.bytes.extracting(0..<size)) }
  }
}

extension InterfaceAddress {
  init?(_ prefix: kdp_prefix) {
    guard let address = prefix.ipAddress else { return nil }
    self.init(address, prefixLength: Int(prefix.length))
  }
}

extension kdp_netlink_address {
  init(_ address: InterfaceAddress, _ index: UInt32) {
    self.init()
    self.index = index
    prefix = kdp_prefix(address.address, length: address.prefixLength)
  }
}

extension NetworkLink {
  init(_ link: kdp_netlink_link) {
    index = link.index
    name = withUnsafeBytes(of: link.name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    kind = withUnsafeBytes(of: link.kind) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    mtu = link.mtu
    isUp = link.up
    isRunning = link.running
  }
}

extension Route {
  init?(_ route: kdp_netlink_route) {
    guard let address = route.destination.ipAddress,
      let prefix = IPPrefix(address, length: Int(route.destination.length))
    else { return nil }
    destination = prefix
    table = route.table
    interface = route.index
    gateway = IPAddress(route.gateway)
    source = IPAddress(route.source)
    metric = route.metric
    mtu = route.mtu
  }
}

extension kdp_netlink_route {
  init(_ route: Route) {
    self.init()
    destination = kdp_prefix(route.destination.address, length: route.destination.length)
    table = route.table
    index = route.interface
    metric = route.metric
    mtu = route.mtu
    type = 1
    if let address = route.gateway { gateway = kdp_address(address, port: 0, scope: 0) }
    if let address = route.source { source = kdp_address(address, port: 0, scope: 0) }
  }
}

extension PolicyRule {
  init(_ rule: kdp_netlink_rule, _ family: IPAddress.Family) {
    self.family = family
    priority = rule.priority
    table = rule.table
    mark = rule.mask == 0 ? nil : rule.mark
    isInverted = rule.invert
    suppressPrefixLength = UInt32(exactly: rule.suppress_prefix)
  }
}

extension kdp_netlink_rule {
  init(_ rule: PolicyRule) {
    self.init()
    family = rule.family.rawValue
    priority = rule.priority
    table = rule.table
    invert = rule.isInverted
    suppress_prefix = rule.suppressPrefixLength.map(Int32.init) ?? -1
    if let value = rule.mark {
      mark = value
      mask = .max
    }
  }
}
