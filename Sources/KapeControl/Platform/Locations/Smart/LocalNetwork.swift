import Foundation
import KapeControl
import KapeProtocols

/// The network that this machine is in.
package struct LocalNetwork: Hashable, Sendable {
  package var fingerprint: NetworkFingerprint
  /// Roughly where the machine is.
  package var point: GeographicPoint?
  /// Whether packets leave by a tunnel: what is measured then is the tunnel.
  package var isTunnel: Bool

  package init(
    fingerprint: NetworkFingerprint = NetworkFingerprint(), point: GeographicPoint? = nil, isTunnel: Bool = false
  ) {
    self.fingerprint = fingerprint
    self.point = point
    self.isTunnel = isTunnel
  }

  /// As it is now. Asks the kernel and reads small files; sends nothing.
  package static func present() -> LocalNetwork {
    var network = LocalNetwork()
    if let geography = TimeZoneGeography() {
      network.fingerprint.country = geography.country
      network.fingerprint.region = geography.region
      network.point = geography.point
    }
    guard let netlink = try? Netlink() else { return network }
    for destination in Self.farAway {
      guard let route = (try? netlink.route(to: destination)) ?? nil,
        let link = (try? netlink.link(at: route.interface)) ?? nil
      else { continue }
      network.isTunnel = ["tun", "wireguard"].contains(link.kind)
      let addresses = (try? netlink.addresses(of: route.interface)) ?? []
      let prefix = addresses.first { $0.address == route.source }?.network
      if !network.isTunnel { network.fingerprint.identify(prefix: prefix, gateway: route.gateway) }
      break
    }
    return network
  }

  /// Reached by the default route if anything is (a.root-servers.net).
  private static let farAway = ["198.41.0.4", "2001:503:ba3e::2:30"].compactMap { IPAddress($0) }
}

extension NetworkFingerprint {
  fileprivate mutating func identify(prefix: IPPrefix?, gateway: IPAddress?) {
    guard prefix != nil || gateway != nil else { return }
    network = [prefix.map { "\($0)" }, gateway.map { "by \($0)" }].compactMap(\.self).joined(separator: " ")
    guard let gateway, let table = try? String(contentsOfFile: "/proc/net/arp", encoding: .utf8) else { return }
    station = Self.hardwareAddress(of: "\(gateway)", table: table)
  }

  /// From `/proc/net/arp` (arp(7)): address, type, flags, hardware address, mask, device.
  static func hardwareAddress(of address: String, table: String) -> String? {
    for line in table.split(separator: "\n").dropFirst() {
      let columns = line.split(separator: " ", omittingEmptySubsequences: true)
      guard columns.count >= 4, columns[0] == address, columns[3] != "00:00:00:00:00:00" else { continue }
      return String(columns[3])
    }
    return nil
  }
}
