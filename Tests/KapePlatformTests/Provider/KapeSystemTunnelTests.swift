import Foundation
import KapeControl
import NetworkExtension
import Synchronization
import Testing

@testable import KapePlatform

/// kaped's place: keeps what it was asked for, and refuses when told to.
private final class FakeHost: TunnelHost {
  struct Seen {
    var applied: [TunnelSettings?] = []
    var refuses = false
    var reasserting: [Bool] = []
    var sockets: [OutsideSocket] = []
  }
  private let state = Mutex(Seen())
  let tun: HostedTun?

  init(tun: HostedTun?) { self.tun = tun }

  var seen: Seen { state.withLock { $0 } }
  func refuse(_ refuses: Bool) { state.withLock { $0.refuses = refuses } }

  func apply(_ settings: TunnelSettings?) async throws {
    try state.withLock { state in
      if state.refuses { throw NETunnelProviderError(.networkSettingsFailed, "add address: File exists") }
      state.applied.append(settings)
    }
  }
  func makeSocket(_ wanted: OutsideSocket) async throws -> Int32 {
    state.withLock { $0.sockets.append(wanted) }
    return socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
  }
  func setReasserting(_ isReasserting: Bool) { state.withLock { $0.reasserting.append(isReasserting) } }
  func cancel(_ error: (any Error)?) {}
}

@Suite struct KapeSystemTunnelTests {
  typealias Prefix = PacketTunnelInterfaceSettings.Prefix
  static let settings = PacketTunnelInterfaceSettings(
    remoteAddress: IpAddress("192.0.2.1"),
    addresses: [Prefix(IpAddress("10.5.6.7"), length: 32), Prefix(IpAddress("fd77::7"), length: 128)],
    includedRoutes: PacketTunnelInterfaceSettings.everything,
    dnsServers: [" 10.5.0.1", "10.5.0.1", "", "fd77::53"].map { IpAddress($0) }, dnsSearchDomains: ["example.com"],
    gateway: IpAddress("10.5.0.2"), mtu: 1280)

  private func made(
    _ mode: PacketIOMode = .utunFd, allowsLocalNetwork: Bool = true
  ) -> (KapeSystemTunnel, FakeHost, NEPacketTunnelProvider) {
    let host = FakeHost(tun: HostedTun(descriptor: 0, name: "kape7", mark: 9))
    let provider = NEPacketTunnelProvider()
    provider.host = host
    let tunnel = KapeSystemTunnel(
      packetTunnelProvider: provider, packetIOMode: mode, allowsLocalNetwork: allowsLocalNetwork)
    return (tunnel, host, provider)
  }

  @Test func settingsReachTheSystem() async throws {
    let (tunnel, host, provider) = made()
    let interface = try await tunnel.establish(Self.settings)
    defer { close(interface.descriptor) }
    let applied = try #require(host.seen.applied.first ?? nil)
    #expect(applied.addresses.map(\.description) == ["10.5.6.7/32", "fd77::7/128"])
    #expect(applied.nameServers.map { "\($0)" } == ["10.5.0.1", "fd77::53"])
    #expect(applied.searchDomains == ["example.com"])
    #expect(applied.mtu == 1280)
    #expect(
      applied.includedRoutes.map(\.description) == [
        "0.0.0.0/0", "10.5.0.1/32", "10.5.0.2/32", "::/0", "fd77::53/128",
      ])
    #expect(
      applied.excludedRoutes.map(\.description) == [
        "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "224.0.0.0/24",
      ])
    #expect(interface.name == "kape7")
    #expect(interface.descriptor != 0 && fcntl(interface.descriptor, F_GETFD) == FD_CLOEXEC)
    withExtendedLifetime(provider) {}
  }

  @Test func theLocalNetworkIsInsideWhenAskedFor() async throws {
    let (tunnel, host, provider) = made(allowsLocalNetwork: false)
    close(try await tunnel.establish(Self.settings).descriptor)
    #expect(host.seen.applied.first??.excludedRoutes == [])
    withExtendedLifetime(provider) {}
  }

  @Test func onlyADefaultRouteIsCutAndARouteMeantSoStays() {
    var narrow = Self.settings
    narrow.includedRoutes = [Prefix(IpAddress("8.0.0.0"), length: 5)]
    #expect(TunnelRoutePolicy.apply(to: narrow, allowingLocalNetwork: true).excludedRoutes == [])
    narrow.includedRoutes =
      PacketTunnelInterfaceSettings.everything + [
        Prefix(IpAddress("8.0.0.0"), length: 5), Prefix(IpAddress("192.168.0.0"), length: 16),
        Prefix(IpAddress("172.16.4.0"), length: 24),
      ]
    #expect(
      TunnelRoutePolicy.apply(to: narrow, allowingLocalNetwork: true).excludedRoutes.map(\.description) == [
        "172.16.0.0/12", "169.254.0.0/16", "224.0.0.0/24",
      ])
  }

  @Test func equalSettingsChangeNothingAndARefusalLeavesTheOldOnes() async throws {
    let (tunnel, host, provider) = made()
    close(try await tunnel.establish(Self.settings).descriptor)
    close(try await tunnel.establish(Self.settings).descriptor)
    #expect(host.seen.applied.count == 1)
    var other = Self.settings
    other.mtu = 1420
    host.refuse(true)
    await #expect(throws: PacketTunnelError.self) { try await tunnel.establish(other) }
    host.refuse(false)
    close(try await tunnel.establish(Self.settings).descriptor)
    #expect(host.seen.applied.count == 1)
    close(try await tunnel.establish(other).descriptor)
    #expect(host.seen.applied.count == 2)
    withExtendedLifetime(provider) {}
  }

  @Test func closingTakesThemAwayOnce() async throws {
    let (tunnel, host, provider) = made()
    await tunnel.close()
    #expect(host.seen.applied.isEmpty)
    close(try await tunnel.establish(Self.settings).descriptor)
    await tunnel.close()
    await tunnel.close()
    #expect(host.seen.applied.count == 2 && host.seen.applied[1] == nil)
    withExtendedLifetime(provider) {}
  }

  @Test func socketsAndReassertingGoToTheProvider() async throws {
    let (tunnel, host, provider) = made()
    let sockets: [(PacketTunnelSocketKind, OutsideSocket)] = [
      (.udp4, OutsideSocket(.ipv4, .udp)), (.tcp4, OutsideSocket(.ipv4, .tcp)), (.udp6, OutsideSocket(.ipv6, .udp)),
      (.tcp6, OutsideSocket(.ipv6, .tcp)),
    ]
    for (kind, _) in sockets { close(try await tunnel.makeSocket(kind).descriptor) }
    #expect(host.seen.sockets == sockets.map(\.1))
    await tunnel.setReasserting(true)
    #expect(provider.reasserting && host.seen.reasserting == [true])
  }

  @Test func aProviderThatIsGoneIsAnError() async {
    let tunnel = KapeSystemTunnel(packetTunnelProvider: NEPacketTunnelProvider(), packetIOMode: .utunFd)
    await #expect(throws: PacketTunnelError.self) { try await tunnel.establish(Self.settings) }
    await #expect(throws: PacketTunnelError.self) { try await tunnel.makeSocket(.udp4) }
    await tunnel.close()
  }
}
