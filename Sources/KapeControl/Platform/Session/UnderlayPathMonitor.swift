import KapeControl
import KapeProtocols

/// Follows the machine's network by rtnetlink, tunnels apart.
package struct UnderlayPathMonitor: NetworkPathMonitor {
  /// Word of one change comes within this; it is looked at once.
  private static let settling = Duration.milliseconds(50)

  private let mark: UInt32
  private let tunnel: String?
  private let logger: any PacketTunnelLogger

  /// `mark`: that of sockets which go past the tunnel; 0: none has one. Routes by the interface `tunnel` are no path.
  package init(mark: UInt32 = 0, tunnel: String? = nil, logger: any PacketTunnelLogger) {
    self.mark = mark
    self.tunnel = tunnel
    self.logger = logger
  }

  package func paths() -> AsyncStream<NetworkPath> {
    let (stream, continuation) = AsyncStream.makeStream(of: NetworkPath.self, bufferingPolicy: .bufferingNewest(1))
    let task = Task { await follow(continuation) }
    continuation.onTermination = { _ in task.cancel() }
    return stream
  }

  private func follow(_ continuation: AsyncStream<NetworkPath>.Continuation) async {
    do {
      let reactor = try Reactor()
      // Before the first look, so that nothing is missed.
      let monitor = try NetworkMonitor()
      continuation.yield(try present())
      while true {
        _ = try await monitor.next(reactor)
        try await Task.sleep(for: Self.settling)
        continuation.yield(try present())
      }
    } catch is CancellationError {
      return
    } catch {
      // A session that thinks it is offline would never connect.
      logger.warning("[session] changes of the network are not followed: \(error)")
      continuation.yield(NetworkPath(ipv4: .init(interface: "")))
    }
  }

  /// As it is now.
  package func present() throws -> NetworkPath {
    let netlink = try Netlink()
    return NetworkPath(ipv4: try route(.ipv4, netlink), ipv6: try route(.ipv6, netlink))
  }

  /// Addresses that are reached by the default route if anything is (those of a.root-servers.net). Nothing is sent there.
  private static let farAway: [IPAddress.Family: IPAddress?] = [
    .ipv4: IPAddress("198.41.0.4"), .ipv6: IPAddress("2001:503:ba3e::2:30"),
  ]

  private func route(_ family: IPAddress.Family, _ netlink: borrowing Netlink) throws -> NetworkPath.Route? {
    if let address = Self.farAway[family] ?? nil, let route = try netlink.route(to: address, mark: mark),
      let link = try netlink.link(at: route.interface), isPath(link)
    {
      return NetworkPath.Route(
        interface: link.name, source: route.source.map { place(of: $0) }, gateway: route.gateway?.description)
    }
    // Without a default route, a server may be in a network that is attached.
    for route in try netlink.routes(family, where: { $0.interface != 0 && !$0.destination.isLinkLocal }) {
      guard let link = try netlink.link(at: route.interface), isPath(link), link.kind != "tun" else { continue }
      let source = try netlink.addresses(of: route.interface).map(\.address).first {
        $0.family == family && !$0.isLinkLocal
      }
      return NetworkPath.Route(
        interface: link.name, source: source.map { place(of: $0) }, gateway: route.gateway?.description)
    }
    return nil
  }

  private func isPath(_ link: NetworkLink) -> Bool {
    link.isUp && link.isRunning && link.name != tunnel && link.name != "lo"
  }

  /// IPv6 hosts take new addresses of the same network all the time (RFC 8981): that is no other path.
  private func place(of address: IPAddress) -> String {
    address.family == .ipv4 ? address.description : address.masked(to: 64).description
  }
}

extension IPPrefix {
  fileprivate var isLinkLocal: Bool {
    address.isLinkLocal || (address.family == .ipv6 && address.description == "ff00::")
  }
}
