package import KapeControl

/// Settings of a tunnel's interface: what a provider hands to `setTunnelNetworkSettings`.
open class NETunnelNetworkSettings: NSObject, NSCopying {
  /// The server, for people; nothing depends on it.
  public let tunnelRemoteAddress: String
  open var dnsSettings: NEDNSSettings?
  /// On Linux no program is made to use a proxy: these are shown in the tunnel's status.
  open var proxySettings: NEProxySettings?

  public init(tunnelRemoteAddress address: String) { tunnelRemoteAddress = address }

  open override func copy() -> Any { copy(with: nil) }

  open func copy(with zone: NSZone? = nil) -> Any {
    let copy = NETunnelNetworkSettings(tunnelRemoteAddress: tunnelRemoteAddress)
    copyCommon(to: copy)
    return copy
  }

  func copyCommon(to other: NETunnelNetworkSettings) {
    other.dnsSettings = dnsSettings?.copied()
    other.proxySettings = proxySettings?.copied()
  }

  /// As kaped takes them. Throws `NETunnelProviderError.networkSettingsInvalid`, which names the value.
  package func tunnelSettings() throws -> TunnelSettings {
    var settings = TunnelSettings()
    settings.remoteAddress = tunnelRemoteAddress
    try dnsSettings?.add(to: &settings)
    try proxySettings?.add(to: &settings)
    return settings
  }
}

/// Settings of a tunnel that carries IP packets.
open class NEPacketTunnelNetworkSettings: NETunnelNetworkSettings {
  open var ipv4Settings: NEIPv4Settings?
  open var ipv6Settings: NEIPv6Settings?
  /// Bytes that the tunnel adds to a packet. Where `mtu` is nil the interface's MTU is 1,500 less these.
  open var tunnelOverheadBytes: NSNumber?
  /// 576 to 65,535; at least 1,280 with IPv6.
  open var mtu: NSNumber?

  open override func copy(with zone: NSZone? = nil) -> Any {
    let copy = NEPacketTunnelNetworkSettings(tunnelRemoteAddress: tunnelRemoteAddress)
    copyCommon(to: copy)
    copy.ipv4Settings = ipv4Settings?.copied()
    copy.ipv6Settings = ipv6Settings?.copied()
    copy.tunnelOverheadBytes = tunnelOverheadBytes
    copy.mtu = mtu
    return copy
  }

  package override func tunnelSettings() throws -> TunnelSettings {
    var settings = try super.tunnelSettings()
    try ipv4Settings?.add(to: &settings)
    try ipv6Settings?.add(to: &settings)
    let smallest = ipv6Settings == nil ? 576 : 1280
    if let mtu {
      guard (smallest...65_535).contains(mtu.intValue) else {
        throw SettingsFault("mtu", mtu.description, "give \(smallest) to 65535").error
      }
      settings.mtu = UInt32(mtu.intValue)
    } else if let overhead = tunnelOverheadBytes {
      guard (0...(1500 - smallest)).contains(overhead.intValue) else {
        throw SettingsFault("tunnelOverheadBytes", overhead.description, "give 0 to \(1500 - smallest)").error
      }
      settings.mtu = UInt32(1500 - overhead.intValue)
    }
    return settings
  }
}

/// A value of the settings that makes no sense.
struct SettingsFault {
  let place: String
  let value: String
  let remedy: String

  init(_ place: String, _ value: String, _ remedy: String) {
    self.place = place
    self.value = value
    self.remedy = remedy
  }

  var error: NETunnelProviderError {
    NETunnelProviderError(.networkSettingsInvalid, "\(place): '\(value)' cannot be used; \(remedy)")
  }
}
