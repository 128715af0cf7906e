import KapeCrypto
import KapeProtocols
import Testing

@testable import KapeControl

private let second: UInt64 = 1_000_000_000
private func ip(_ text: String) throws -> IPAddress { try #require(IPAddress(text)) }
private func route(_ interface: UInt32, source: String? = nil, gateway: String? = nil) throws -> Route {
  var route = Route(try #require(IPPrefix("0.0.0.0/0")), interface: interface)
  route.source = try source.map(ip)
  route.gateway = try gateway.map(ip)
  return route
}

@Suite struct UnderlayWatchTests {
  private func underlay(_ interface: UInt32?, source: String = "192.0.2.5") throws -> Underlay {
    let path = try interface.map { Underlay.Path(try route($0, source: source, gateway: "192.0.2.1")) }
    return Underlay([try ip("198.51.100.1"): path])
  }

  /// K-047: a storm of path updates that change nothing, then one that does.
  @Test func twentyUpdatesThatChangeNothingLeadToNothing() throws {
    let wifi = try underlay(2)
    var watch = UnderlayWatch(wifi)
    var actions = 0
    var now = 10 * second
    for _ in 0..<20 {
      watch.notice(now: now)
      now += second / 2
      if let due = watch.due, due <= now, watch.look(at: wifi, now: due) { actions += 1 }
    }
    #expect(actions == 0)
    watch.notice(now: now)
    let due = try #require(watch.due)
    #expect(due == now + UnderlayWatch.settling)
    let result1 = try watch.look(at: underlay(2, source: "192.0.2.77"), now: due)
    #expect(result1)
    #expect(watch.due == nil)
  }

  @Test func realChangesInARowLeadToOneActionInAHoldDown() throws {
    var watch = UnderlayWatch(try underlay(2))
    var actions: [UInt64] = []
    var now: UInt64 = 0
    for step in 0..<100 {
      now = UInt64(step) * second / 10
      watch.notice(now: now)
      if let due = watch.due, due <= now, watch.look(at: try underlay(UInt32(step % 7)), now: now) {
        actions.append(now)
      }
    }
    #expect(actions.count >= 3)
    for (earlier, later) in zip(actions, actions.dropFirst()) { #expect(later - earlier >= UnderlayWatch.holdDown) }
  }

  @Test func aNetworkThatComesBackIsNewEvenIfItIsTheSame() throws {
    let wifi = try underlay(2)
    var watch = UnderlayWatch(wifi)
    let result2 = try watch.look(at: underlay(nil), now: 0)
    #expect(!result2)
    let result3 = try watch.look(at: underlay(nil), now: 1)
    #expect(!result3)
    let result4 = watch.look(at: wifi, now: 2)
    #expect(result4)
    let result5 = watch.look(at: wifi, now: 3)
    #expect(!result5)
  }

  @Test func anEndpointThatRoamsIsNoNewNetwork() throws {
    var watch = UnderlayWatch(try underlay(2))
    let path = Underlay.Path(try route(3, source: "192.0.2.5"))
    let result6 = try watch.look(at: Underlay([ip("203.0.113.9"): path]), now: 0)
    #expect(!result6)
    let result7 = watch.look(at: Underlay(), now: 0)
    #expect(!result7)
  }
}

@Suite struct EndpointNamesTests {
  let peer: PublicKey
  init() { peer = PrivateKey().publicKey }

  private func names() -> EndpointNames {
    var names = EndpointNames()
    names.add(peer, name: "vpn.example.net", port: 51820)
    return names
  }

  @Test func aNameIsNotLookedUpMoreOftenThanTheInterval() {
    var names = names()
    let result8 = names.begin(peer, now: 0)
    #expect(result8 == "vpn.example.net")
    let result9 = names.begin(peer, now: EndpointNames.interval)
    #expect(result9 == nil, "one is under way")
    _ = names.failed(peer, present: nil)
    let result10 = names.begin(peer, now: EndpointNames.interval - 1)
    #expect(result10 == nil)
    let result11 = names.begin(peer, now: EndpointNames.interval)
    #expect(result11 != nil)
    let result12 = names.begin(PrivateKey().publicKey, now: 0)
    #expect(result12 == nil)
  }

  @Test func aServerThatMovedIsFollowed() throws {
    var names = names()
    let old = SocketAddress(try ip("192.0.2.1"), port: 51820)
    let result13 = try names.found([ip("192.0.2.2"), ip("192.0.2.3")], for: peer, present: old)
    #expect(result13 == SocketAddress(try ip("192.0.2.2"), port: 51820))
    let result14 = try names.found([ip("192.0.2.1")], for: peer, present: old)
    #expect(result14 == nil)
    let result15 = names.found([], for: peer, present: old)
    #expect(result15 == nil)
  }

  @Test func addressesThatDoNotAnswerAreTriedInTurn() throws {
    var names = names()
    let list = [try ip("2001:db8::1"), try ip("192.0.2.1")]
    var present: SocketAddress?
    var tried: [IPAddress] = []
    for _ in 0..<4 {
      present = names.found(list, for: peer, present: present)
      tried.append(try #require(present?.address))
    }
    #expect(tried == [list[0], list[1], list[0], list[1]])
  }

  @Test func whenTheLookUpFailsTheLastGoodAddressIsTried() throws {
    var names = names()
    let good = SocketAddress(try ip("192.0.2.1"), port: 51820)
    let result16 = names.failed(peer, present: good)
    #expect(result16 == nil)
    names.connected(peer, at: good)
    let result17 = names.failed(peer, present: good)
    #expect(result17 == nil)
    let result18 = try names.failed(peer, present: SocketAddress(ip("192.0.2.9"), port: 1))
    #expect(result18 == good)
  }

  @Test func anEndpointThatAnsweredWithoutAHandshakeIsGoodToo() throws {
    var names = names()
    let old = SocketAddress(try ip("192.0.2.1"), port: 51820)
    let new = SocketAddress(try ip("192.0.2.2"), port: 51820)
    names.connected(peer, at: old)
    names.tried(new, for: peer, received: 100)
    _ = names.begin(peer, received: 100, now: 0)
    let before = names.failed(peer, present: nil)
    #expect(before == old)
    names.tried(new, for: peer, received: 100)
    _ = names.begin(peer, received: 101, now: EndpointNames.interval)
    let after = names.failed(peer, present: nil)
    #expect(after == new)
  }

  @Test func addressesWithAUsableRouteComeFirst() throws {
    let ipv4 = try ip("192.0.2.1")
    let ipv6 = try ip("2001:db8::1")
    let far = try ip("2001:db8:ffff::1")
    func order(_ routes: [IPAddress: Route]) -> [IPAddress] { EndpointOrder.sort([ipv4, far, ipv6]) { routes[$0] } }
    #expect(order([:]) == [ipv4, far, ipv6])
    #expect(order([ipv4: try route(1), ipv6: try route(1, source: "2001:db8::5")]) == [ipv6, ipv4, far])
    #expect(order([ipv4: try route(1), ipv6: try route(1, source: "fd00::5")]) == [ipv4, ipv6, far])
    #expect(order([ipv4: try route(1), ipv6: try route(1, source: "fe80::5")]) == [ipv4, ipv6, far])
  }
}

@Suite struct UnderlayResolverTests {
  @Test func theStubOfSystemdResolvedIsPassedBy() throws {
    let folder = try TemporaryFolder()
    let file = folder.path + "/resolv.conf"
    let upstream = folder.path + "/upstream"
    try Files.write(Array("nameserver 127.0.0.53\nsearch a.example\n".utf8), to: file)
    #expect(UnderlayResolver(file: file, resolvedFile: upstream)?.servers.map(\.description) == ["127.0.0.53:53"])
    try Files.write(Array("nameserver 192.0.2.1\nnameserver 2001:db8::1\nsearch b.example\n".utf8), to: upstream)
    let resolver = UnderlayResolver(file: file, resolvedFile: upstream)
    #expect(resolver?.servers.map(\.description) == ["192.0.2.1:53", "[2001:db8::1]:53"])
    #expect(resolver?.search == ["b.example"])
  }

  @Test func aFileOfTheTunnelsSaysNothingAboutTheUnderlay() throws {
    let folder = try TemporaryFolder()
    let file = folder.path + "/resolv.conf"
    #expect(UnderlayResolver(file: file)?.servers.map(\.description) == ["127.0.0.1:53"])
    try Files.write(Array("nameserver 10.0.0.1\n".utf8), to: file)
    #expect(UnderlayResolver(file: file, unless: Array("nameserver 10.0.0.1\n".utf8)) == nil)
    #expect(UnderlayResolver(file: file, unless: [])?.servers.map(\.description) == ["10.0.0.1:53"])
  }

  @Test func shortNamesAreSearchedForAndLongOnesAskedAsTheyAre() {
    let resolver = UnderlayResolver(servers: [], search: ["a.example", "."])
    #expect(resolver.candidates("vpn") == ["vpn.a.example", "vpn"])
    #expect(resolver.candidates("vpn.b.example") == ["vpn.b.example", "vpn.b.example.a.example"])
    #expect(resolver.candidates("vpn.") == ["vpn."])
  }
}
