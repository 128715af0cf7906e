internal import KapeControl
internal import KapeProtocols

/// IPv4 addresses and routes of a tunnel.
open class NEIPv4Settings: NSObject, NSCopying {
  /// Dotted quads.
  public let addresses: [String]
  /// One for each address, dotted quads.
  public let subnetMasks: [String]
  /// What goes into the tunnel, by the longest prefix. nil: only the networks of the addresses.
  open var includedRoutes: [NEIPv4Route]?
  /// What stays outside although an included route covers it.
  open var excludedRoutes: [NEIPv4Route]?

  public init(addresses: [String], subnetMasks: [String]) {
    self.addresses = addresses
    self.subnetMasks = subnetMasks
  }

  open override func copy() -> Any { copied() }
  open func copy(with zone: NSZone? = nil) -> Any { copied() }

  func copied() -> NEIPv4Settings {
    let copy = NEIPv4Settings(addresses: addresses, subnetMasks: subnetMasks)
    copy.includedRoutes = includedRoutes?.map { $0.copied() }
    copy.excludedRoutes = excludedRoutes?.map { $0.copied() }
    return copy
  }

  func add(to settings: inout TunnelSettings) throws {
    guard addresses.count == subnetMasks.count else {
      let counts = "\(addresses.count) and \(subnetMasks.count)"
      throw SettingsFault("ipv4Settings.addresses and subnetMasks", counts, "give as many masks as addresses").error
    }
    for (index, (address, mask)) in zip(addresses, subnetMasks).enumerated() {
      let place = "ipv4Settings.addresses[\(index)]"
      guard let parsed = IPAddress(address), parsed.family == .ipv4 else {
        throw SettingsFault(place, address, "give an IPv4 address such as 10.0.0.2").error
      }
      guard let length = netmaskLength(mask), let whole = InterfaceAddress(parsed, prefixLength: length) else {
        throw SettingsFault("ipv4Settings.subnetMasks[\(index)]", mask, "give a mask such as 255.255.255.0").error
      }
      settings.addresses.append(whole)
    }
    settings.includedRoutes += try prefixes(includedRoutes, "includedRoutes")
    settings.excludedRoutes += try prefixes(excludedRoutes, "excludedRoutes")
  }

  private func prefixes(_ routes: [NEIPv4Route]?, _ name: String) throws -> [IPPrefix] {
    try (routes ?? []).enumerated().map { index, route in
      let place = "ipv4Settings.\(name)[\(index)]"
      guard let address = IPAddress(route.destinationAddress), address.family == .ipv4 else {
        throw SettingsFault(place, route.destinationAddress, "give an IPv4 address such as 10.0.0.0").error
      }
      guard let length = netmaskLength(route.destinationSubnetMask), let prefix = IPPrefix(address, length: length)
      else {
        throw SettingsFault(place, route.destinationSubnetMask, "give a mask such as 255.0.0.0").error
      }
      return prefix
    }
  }
}

/// An IPv4 network that is routed.
open class NEIPv4Route: NSObject, NSCopying {
  public let destinationAddress: String
  public let destinationSubnetMask: String
  /// Kept for callers; a TUN has no gateways, and routes lead to the interface.
  open var gatewayAddress: String?

  public init(destinationAddress address: String, subnetMask: String) {
    destinationAddress = address
    destinationSubnetMask = subnetMask
  }

  /// Everything.
  open class func `default`() -> NEIPv4Route { NEIPv4Route(destinationAddress: "0.0.0.0", subnetMask: "0.0.0.0") }

  open override func copy() -> Any { copied() }
  open func copy(with zone: NSZone? = nil) -> Any { copied() }

  func copied() -> NEIPv4Route {
    let copy = NEIPv4Route(destinationAddress: destinationAddress, subnetMask: destinationSubnetMask)
    copy.gatewayAddress = gatewayAddress
    return copy
  }
}

/// nil unless its one bits are all in front.
private func netmaskLength(_ text: String) -> Int? {
  InterfaceAddress("0.0.0.0/" + text).flatMap { text.contains(".") ? $0.prefixLength : nil }
}
