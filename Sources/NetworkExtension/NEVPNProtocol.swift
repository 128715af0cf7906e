/// What a configuration says of its server, whatever the protocol.
open class NEVPNProtocol: NSObject, NSCopying {
  /// For people; nothing depends on it.
  open var serverAddress: String?
  open var username: String?
  /// Whatever the app's own store takes as a reference to a secret. The secret itself has no place here.
  open var passwordReference: Data?
  open var disconnectOnSleep = false
  /// Everything goes into the tunnel, or nowhere. Not supported yet: a configuration with it is not saved.
  open var includeAllNetworks = false
  /// With `includeAllNetworks`: not the local networks.
  open var excludeLocalNetworks = false
  open var enforceRoutes = false
  open var proxySettings: NEProxySettings?

  public override init() { super.init() }

  open override func copy() -> Any { copy(with: nil) }

  open func copy(with zone: NSZone? = nil) -> Any {
    let copy = NEVPNProtocol()
    copyCommon(to: copy)
    return copy
  }

  func copyCommon(to other: NEVPNProtocol) {
    other.serverAddress = serverAddress
    other.username = username
    other.passwordReference = passwordReference
    other.disconnectOnSleep = disconnectOnSleep
    other.includeAllNetworks = includeAllNetworks
    other.excludeLocalNetworks = excludeLocalNetworks
    other.enforceRoutes = enforceRoutes
    other.proxySettings = proxySettings?.copied()
  }
}

/// The configuration of a tunnel that a provider of the app's own runs.
open class NETunnelProviderProtocol: NEVPNProtocol {
  /// For the provider, which finds it as its `protocolConfiguration`. Values of a property list only, 256 KiB at most.
  open var providerConfiguration: [String: Any]?
  /// Which provider. On Linux also the name of its executable where `providerExecutable` is nil: beside the app's own,
  /// or in `../libexec/` from there.
  open var providerBundleIdentifier: String?
  /// Linux: the provider's executable, as an absolute path.
  open var providerExecutable: String?
  /// Linux: arguments for it.
  open var providerArguments: [String] = []
  /// Linux: the folder of shared state, `AppGroupIdentifier` of `KapeSDK.plist`.
  open var appGroupIdentifier: String?

  open override func copy(with zone: NSZone? = nil) -> Any {
    let copy = NETunnelProviderProtocol()
    copyCommon(to: copy)
    copy.providerConfiguration = providerConfiguration
    copy.providerBundleIdentifier = providerBundleIdentifier
    copy.providerExecutable = providerExecutable
    copy.providerArguments = providerArguments
    copy.appGroupIdentifier = appGroupIdentifier
    return copy
  }
}
