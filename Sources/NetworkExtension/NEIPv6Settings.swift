internal import KapeControl
internal import KapeProtocols

/// IPv6 addresses and routes of a tunnel.
open class NEIPv6Settings: NSObject, NSCopying {
  /// Text of RFC 4291, section 2.2.
  public let addresses: [String]
  /// One for each address, 0 to 128.
  public let networkPrefixLengths: [NSNumber]
  /// What goes into the tunnel, by the longest prefix. nil: only the networks of the addresses.
  open var includedRoutes: [NEIPv6Route]?
  /// What stays outside although an included route covers it.
  open var excludedRoutes: [NEIPv6Route]?

  public init(addresses: [String], networkPrefixLengths: [NSNumber]) {
    self.addresses = addresses
    self.networkPrefixLengths = networkPrefixLengths
  }

  open override func copy() -> Any { copied() }
  open func copy(with zone: NSZone? = nil) -> Any { copied() }

  func copied() -> NEIPv6Settings {
    let copy = NEIPv6Settings(addresses: addresses, networkPrefixLengths: networkPrefixLengths)
    copy.includedRoutes = includedRoutes?.map { $0.copied() }
    copy.excludedRoutes = excludedRoutes?.map { $0.copied() }
    return copy
  }

  func add(to settings: inout TunnelSettings) throws {
    guard addresses.count == networkPrefixLengths.count else {
      let counts = "\(addresses.count) and \(networkPrefixLengths.count)"
      throw SettingsFault(
        "ipv6Settings.addresses and networkPrefixLengths", counts, "give as many lengths as addresses"
      ).error
    }
    for (index, (address, length)) in zip(addresses, networkPrefixLengths).enumerated() {
      guard let parsed = IPAddress(address), parsed.family == .ipv6 else {
        throw SettingsFault("ipv6Settings.addresses[\(index)]", address, "give an IPv6 address such as fd00::2").error
      }
      guard let whole = InterfaceAddress(parsed, prefixLength: length.intValue) else {
        throw SettingsFault("ipv6Settings.networkPrefixLengths[\(index)]", length.description, "give 0 to 128").error
      }
      settings.addresses.append(whole)
    }
    settings.includedRoutes += try prefixes(includedRoutes, "includedRoutes")
    settings.excludedRoutes += try prefixes(excludedRoutes, "excludedRoutes")
  }

  private func prefixes(_ routes: [NEIPv6Route]?, _ name: String) throws -> [IPPrefix] {
    try (routes ?? []).enumerated().map { index, route in
      let place = "ipv6Settings.\(name)[\(index)]"
      guard let address = IPAddress(route.destinationAddress), address.family == .ipv6 else {
        throw SettingsFault(place, route.destinationAddress, "give an IPv6 address such as fd00::").error
      }
      guard let prefix = IPPrefix(address, length: route.destinationNetworkPrefixLength.intValue) else {
        throw SettingsFault(place, route.destinationNetworkPrefixLength.description, "give 0 to 128").error
      }
      return prefix
    }
  }
}

/// An IPv6 network that is routed.
open class NEIPv6Route: NSObject, NSCopying {
  public let destinationAddress: String
  public let destinationNetworkPrefixLength: NSNumber
  /// Kept for callers; a TUN has no gateways, and routes lead to the interface.
  open var gatewayAddress: String?

  public init(destinationAddress address: String, networkPrefixLength: NSNumber) {
    destinationAddress = address
    destinationNetworkPrefixLength = networkPrefixLength
  }

  /// Everything.
  open class func `default`() -> NEIPv6Route { NEIPv6Route(destinationAddress: "::", networkPrefixLength: 0) }

  open override func copy() -> Any { copied() }
  open func copy(with zone: NSZone? = nil) -> Any { copied() }

  func copied() -> NEIPv6Route {
    let copy = NEIPv6Route(
      destinationAddress: destinationAddress, networkPrefixLength: destinationNetworkPrefixLength)
    copy.gatewayAddress = gatewayAddress
    return copy
  }
}
