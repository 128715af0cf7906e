/// What the app wants of the tunnel, as far as it decides what to connect to.
package struct TunnelWishes: Hashable, Sendable {
  package var mode = KapeConnectionMode.auto
  package var preference = KapeProtocolPreference.automatic
  /// Resolvers of the user's own.
  package var dnsServers: [String] = []
  package var usesProxy = false
  package var usesDedicatedIP = false

  package init() {}

  package init(_ configuration: SharedConfiguration) {
    mode = configuration.connectionMode
    preference = configuration.selectedProtocol
    dnsServers = configuration.dnsServers
    usesProxy = configuration.usesProxy
    usesDedicatedIP = configuration.usesDedicatedIP
  }
}
