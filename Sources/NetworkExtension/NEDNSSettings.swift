internal import KapeControl
internal import KapeProtocols

/// Which protocol a system asks name servers by. The names are the platform's.
public enum NEDNSProtocol: Int, Sendable {
  case cleartext = 1
  // swift-format-ignore: AlwaysUseLowerCamelCase
  case TLS = 2
  // swift-format-ignore: AlwaysUseLowerCamelCase
  case HTTPS = 3
}

/// Name servers of a tunnel.
open class NEDNSSettings: NSObject, NSCopying {
  /// Addresses, IPv4 or IPv6.
  public let servers: [String]
  open var searchDomains: [String]?
  open var domainName: String?
  /// Domains whose names these servers are asked for. nil, or with an empty string in it: all names. Others need a
  /// system with systemd-resolved; elsewhere settings with them are refused, since resolv.conf cannot say it.
  open var matchDomains: [String]?
  /// False: the match domains are search domains too.
  open var matchDomainsNoSearch = false
  open var dnsProtocol: NEDNSProtocol { .cleartext }

  public init(servers: [String]) { self.servers = servers }

  open override func copy() -> Any { copied() }
  open func copy(with zone: NSZone? = nil) -> Any { copied() }

  func copied() -> NEDNSSettings {
    let copy = NEDNSSettings(servers: servers)
    copy.searchDomains = searchDomains
    copy.domainName = domainName
    copy.matchDomains = matchDomains
    copy.matchDomainsNoSearch = matchDomainsNoSearch
    return copy
  }

  func add(to settings: inout TunnelSettings) throws {
    settings.nameServers = try servers.enumerated().map { index, text in
      guard let server = ScopedAddress(text: Array(text.utf8).span.bytes) else {
        throw SettingsFault("dnsSettings.servers[\(index)]", text, "give an IPv4 or IPv6 address").error
      }
      return server
    }
    let isForAll = matchDomains?.contains("") ?? true
    settings.matchDomains = isForAll ? nil : matchDomains
    var search = searchDomains ?? []
    if let domainName, !domainName.isEmpty { search.append(domainName) }
    if !isForAll, !matchDomainsNoSearch { search += matchDomains ?? [] }
    var seen: Set<String> = []
    settings.searchDomains = search.filter { seen.insert($0.lowercased()).inserted }
  }
}
