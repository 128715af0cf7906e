import Foundation
public import NetworkExtension

/// The system's side of a tunnel by way of its provider: settings go to `setTunnelNetworkSettings`, the interface is the
/// provider's, sockets past the tunnel are made by the system. One object may be the session's `systemTunnel` and its
/// `reassertingController` both.
public final actor KapeSystemTunnel: SystemTunnel, ReassertingController {
  // The provider keeps the session that keeps this.
  private weak var provider: NEPacketTunnelProvider?
  private let mode: PacketIOMode
  private let allowsLocalNetwork: Bool
  private var applied: PacketTunnelInterfaceSettings?
  private var bridge: PacketFlowBridge?

  public init(packetTunnelProvider: NEPacketTunnelProvider, packetIOMode: PacketIOMode) {
    self.init(packetTunnelProvider: packetTunnelProvider, packetIOMode: packetIOMode, allowsLocalNetwork: true)
  }

  package init(packetTunnelProvider: NEPacketTunnelProvider, packetIOMode: PacketIOMode, allowsLocalNetwork: Bool) {
    provider = packetTunnelProvider
    mode = packetIOMode
    self.allowsLocalNetwork = allowsLocalNetwork
  }

  public func establish(_ settings: PacketTunnelInterfaceSettings) async throws -> PacketTunnelInterface {
    guard let provider else { throw PacketTunnelError.tunnelSetupFailed("the provider is gone") }
    let wanted = TunnelRoutePolicy.apply(to: settings, allowingLocalNetwork: allowsLocalNetwork)
    if wanted != applied {
      do {
        try await provider.setTunnelNetworkSettings(NEPacketTunnelNetworkSettings(wanted))
      } catch {
        throw PacketTunnelError.tunnelSetupFailed("\(error)")
      }
      applied = wanted
    }
    return try interface(of: provider)
  }

  private func interface(of provider: NEPacketTunnelProvider) throws -> PacketTunnelInterface {
    guard let tun = provider.tun else { throw PacketTunnelError.tunnelSetupFailed("the provider has no interface") }
    switch mode {
    case .utunFd:
      let own = fcntl(tun.descriptor, F_DUPFD_CLOEXEC, 0)
      guard own >= 0 else {
        throw PacketTunnelError.tunnelSetupFailed("no descriptor for \(tun.name): \(String(cString: strerror(errno)))")
      }
      return PacketTunnelInterface(descriptor: own, name: tun.name)
    case .packetFlow:
      let bridge = try self.bridge ?? PacketFlowBridge(provider.packetFlow)
      self.bridge = bridge
      return PacketTunnelInterface(descriptor: try bridge.engineEnd(), name: tun.name)
    }
  }

  public func close() async {
    bridge?.close()
    bridge = nil
    guard applied != nil, let provider else { return }
    applied = nil
    try? await provider.setTunnelNetworkSettings(nil)
  }

  public func makeSocket(_ kind: PacketTunnelSocketKind) async throws -> PacketTunnelSocket {
    guard let provider else { throw PacketTunnelError.tunnelSetupFailed("the provider is gone") }
    let family = kind == .udp4 || kind == .tcp4 ? AF_INET : AF_INET6
    let type = kind == .udp4 || kind == .udp6 ? SOCK_DGRAM : SOCK_STREAM
    do {
      return PacketTunnelSocket(
        descriptor: try await provider.makeSocketOutsideTunnel(family: family, type: Int32(type.rawValue)))
    } catch {
      throw PacketTunnelError.network("no socket past the tunnel: \(error)")
    }
  }

  public func setReasserting(_ reasserting: Bool) async {
    provider?.reasserting = reasserting
  }
}

extension KapeSystemTunnel: UnderlayTelling {
  package var underlay: (mark: UInt32, interface: String)? { provider?.tun.map { ($0.mark, $0.name) } }
}

extension NEPacketTunnelNetworkSettings {
  convenience init(_ settings: PacketTunnelInterfaceSettings) {
    self.init(tunnelRemoteAddress: settings.remoteAddress.description)
    typealias Prefix = PacketTunnelInterfaceSettings.Prefix
    func only(_ isIPv4: Bool, _ prefixes: [Prefix]) -> [Prefix] { prefixes.filter { $0.address.isIPv4 == isIPv4 } }

    let ipv4 = only(true, settings.addresses)
    if !ipv4.isEmpty {
      let family = NEIPv4Settings(
        addresses: ipv4.map(\.address.description), subnetMasks: ipv4.map { NEIPv4Route.mask($0.length) })
      family.includedRoutes = only(true, settings.includedRoutes).map(NEIPv4Route.init(prefix:))
      family.excludedRoutes = only(true, settings.excludedRoutes).map(NEIPv4Route.init(prefix:))
      ipv4Settings = family
    }
    let ipv6 = only(false, settings.addresses)
    if !ipv6.isEmpty {
      let family = NEIPv6Settings(
        addresses: ipv6.map(\.address.description), networkPrefixLengths: ipv6.map { NSNumber(value: $0.length) })
      family.includedRoutes = only(false, settings.includedRoutes).map(NEIPv6Route.init(prefix:))
      family.excludedRoutes = only(false, settings.excludedRoutes).map(NEIPv6Route.init(prefix:))
      ipv6Settings = family
    }
    if !settings.dnsServers.isEmpty {
      let dns = NEDNSSettings(servers: settings.dnsServers.map(\.description))
      dns.searchDomains = settings.dnsSearchDomains
      dnsSettings = dns
    }
    mtu = NSNumber(value: settings.mtu)
  }
}

extension IpAddress {
  fileprivate var isIPv4: Bool {
    if case .v4 = self { true } else { false }
  }
}

extension NEIPv4Route {
  fileprivate convenience init(prefix: PacketTunnelInterfaceSettings.Prefix) {
    self.init(destinationAddress: prefix.address.description, subnetMask: Self.mask(prefix.length))
  }

  fileprivate static func mask(_ length: Int) -> String {
    let bits = length <= 0 ? 0 : UInt32.max << UInt32(32 - min(length, 32))
    return stride(from: 24, through: 0, by: -8).map { String(bits >> UInt32($0) & 0xff) }.joined(separator: ".")
  }
}

extension NEIPv6Route {
  fileprivate convenience init(prefix: PacketTunnelInterfaceSettings.Prefix) {
    self.init(
      destinationAddress: prefix.address.description, networkPrefixLength: NSNumber(value: prefix.length))
  }
}
