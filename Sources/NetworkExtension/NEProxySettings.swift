internal import KapeControl

/// A proxy's address.
open class NEProxyServer: NSObject, NSCopying {
  public let address: String
  public let port: Int
  open var authenticationRequired = false
  open var username: String?
  open var password: String?

  public init(address: String, port: Int) {
    self.address = address
    self.port = port
  }

  open override func copy() -> Any { copied() }
  open func copy(with zone: NSZone? = nil) -> Any { copied() }

  func copied() -> NEProxyServer {
    let copy = NEProxyServer(address: address, port: port)
    copy.authenticationRequired = authenticationRequired
    copy.username = username
    copy.password = password
    return copy
  }
}

/// Proxies that a tunnel's server wants to be used. Linux has no place where every program looks for them: they are shown
/// in the tunnel's status, without user names and passwords, and applied by nobody.
open class NEProxySettings: NSObject, NSCopying {
  open var autoProxyConfigurationEnabled = false
  open var proxyAutoConfigurationURL: URL?
  open var proxyAutoConfigurationJavaScript: String?
  open var httpEnabled = false
  open var httpServer: NEProxyServer?
  open var httpsEnabled = false
  open var httpsServer: NEProxyServer?
  open var excludeSimpleHostnames = false
  open var exceptionList: [String]?
  open var matchDomains: [String]?

  open override func copy() -> Any { copied() }
  open func copy(with zone: NSZone? = nil) -> Any { copied() }

  func copied() -> NEProxySettings {
    let copy = NEProxySettings()
    copy.autoProxyConfigurationEnabled = autoProxyConfigurationEnabled
    copy.proxyAutoConfigurationURL = proxyAutoConfigurationURL
    copy.proxyAutoConfigurationJavaScript = proxyAutoConfigurationJavaScript
    copy.httpEnabled = httpEnabled
    copy.httpServer = httpServer?.copied()
    copy.httpsEnabled = httpsEnabled
    copy.httpsServer = httpsServer?.copied()
    copy.excludeSimpleHostnames = excludeSimpleHostnames
    copy.exceptionList = exceptionList
    copy.matchDomains = matchDomains
    return copy
  }

  func add(to settings: inout TunnelSettings) throws {
    var proxies = TunnelProxies()
    if httpEnabled { proxies.http = try server(httpServer, "proxySettings.httpServer") }
    if httpsEnabled { proxies.https = try server(httpsServer, "proxySettings.httpsServer") }
    if autoProxyConfigurationEnabled { proxies.scriptURL = proxyAutoConfigurationURL?.absoluteString }
    proxies.exceptions = exceptionList ?? []
    if proxies.http != nil || proxies.https != nil || proxies.scriptURL != nil { settings.proxies = proxies }
  }

  private func server(_ server: NEProxyServer?, _ place: String) throws -> TunnelProxies.Server? {
    guard let server else { return nil }
    guard let port = UInt16(exactly: server.port), port != 0 else {
      throw SettingsFault(place + ".port", String(server.port), "give 1 to 65535").error
    }
    return TunnelProxies.Server(host: server.address, port: port)
  }
}
