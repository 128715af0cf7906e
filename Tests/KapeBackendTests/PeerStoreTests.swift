import Foundation
import KapeCrypto
import KapeProtocols
import Testing

@testable import KapeBackend

@Suite struct PeerStoreTests {
  /// A database of its own with a small server.
  private final class Fixture {
    let path = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString + ".db").path
    let database: Database
    var store: PeerStore { PeerStore(database: database) }
    let server: WireGuardServer

    init(_ network: String = "10.0.0.1/24", name: String = "one") throws {
      database = try Database(path: path)
      try Schema.prepare(database)
      server = try PeerStoreTests.server(network, name)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    func admit(
      _ number: UInt8, of holder: [String] = ["a", "b"], now: Int64 = 1000, cap: Int64 = 3,
      _ atCap: BackendSettings.Peers.AtCap = .replace, after last: UInt32 = 0, on other: WireGuardServer? = nil,
      lastUse: (StoredPeer) -> Int64 = { $0.added }
    ) throws -> PeerStore.Admitted {
      try store.admit(
        .init(
          server: other ?? server, key: PeerStoreTests.key(number), presharedKey: [number], holders: holder, now: now,
          expires: now + 100, peers: .init(cap: cap, atCap: atCap, interval: 10)), after: last, lastUse: lastUse)
    }
  }

  private static func key(_ number: UInt8) -> PublicKey {
    PublicKey(bytes: [UInt8](repeating: number, count: 32).span.bytes)!
  }

  private static func server(_ network: String, _ name: String) throws -> WireGuardServer {
    let settings = try BackendSettings(
      parsing: Array(
        """
        {"servers": [{"name": "\(name)", "interface": "wg0", "ip": "192.0.2.1", "port": 1, "auth": "192.0.2.1:2",
          "address": "\(network)"}]}
        """.utf8))
    return settings.servers[0]
  }

  @Test func addressesGoRoundBeforeOneIsGivenAgain() throws {
    let fixture = try Fixture("10.0.0.3/29")
    var last: UInt32 = 0
    var given: [String] = []
    for number in 1...5 {
      let admitted = try fixture.admit(UInt8(number), cap: 100, after: last)
      last = admitted.address
      given.append(TunnelNetwork.text(last))
    }
    #expect(given == ["10.0.0.1", "10.0.0.2", "10.0.0.4", "10.0.0.5", "10.0.0.6"], "neither ends nor the server's own")
    #expect(throws: PeerStore.Refused.full) { try fixture.admit(6, cap: 100, after: last) }
    try fixture.store.remove(Self.key(2), from: "one")
    #expect(TunnelNetwork.text(try fixture.admit(6, cap: 100, after: last).address) == "10.0.0.2")
  }

  @Test func whoeverWasLongestUnusedMakesRoom() throws {
    let fixture = try Fixture()
    for number in 1...3 { _ = try fixture.admit(UInt8(number), now: 1000 + Int64(number)) }
    let heard: [PublicKey: Int64] = [Self.key(1): 1050]
    let admitted = try fixture.admit(4, now: 1060) { max($0.added, heard[$0.key] ?? 0) }
    #expect(admitted.leaving?.key == Self.key(2))
    #expect(try fixture.store.wanted(on: "one", at: 1060).map(\.0.key) == [1, 3, 4].map(Self.key))
    #expect(try fixture.store.leaving("one", at: 1060, most: 10).map(\.key) == [Self.key(2)])
  }

  @Test func aCapThatRefuses() throws {
    let fixture = try Fixture()
    for number in 1...3 { _ = try fixture.admit(UInt8(number), cap: 3, .refuse) }
    #expect(throws: PeerStore.Refused.atCap) { try fixture.admit(4, cap: 3, .refuse) }
    #expect(try !fixture.admit(2, now: 1050, cap: 3, .refuse).isNew, "one that is there may come again")
    #expect(try fixture.admit(5, of: ["c", "d"], cap: 3, .refuse).isNew, "another holder has his own")
    #expect(try fixture.admit(4, now: 1100, cap: 3, .refuse).isNew, "two have expired")
  }

  @Test func aCapIsOfAllServersAndBothPseudonyms() throws {
    let fixture = try Fixture()
    let second = try Self.server("10.0.1.1/24", "two")
    _ = try fixture.admit(1, of: ["p1", "p0"], cap: 2)
    _ = try fixture.admit(2, of: ["p2", "p1"], cap: 2, on: second)
    #expect(throws: PeerStore.Refused.atCap) { try fixture.admit(3, of: ["p1", "p0"], cap: 2, .refuse) }
    #expect(throws: PeerStore.Refused.atCap) { try fixture.admit(3, of: ["p2", "p1"], cap: 2, .refuse, on: second) }
    #expect(try fixture.admit(3, of: ["p2", "p1"], now: 1001, cap: 2, on: second).leaving?.server != nil)
  }

  @Test func aKeyIsItsHolders() throws {
    let fixture = try Fixture()
    let first = try fixture.admit(1, of: ["a", "b"])
    #expect(throws: PeerStore.Refused.taken) { try fixture.admit(1, of: ["c", "d"]) }
    let again = try fixture.admit(1, of: ["x", "a"], now: 1050)
    #expect(again.address == first.address)
    #expect(try fixture.store.leaving("one", at: 1149, most: 10).isEmpty)
    #expect(try fixture.store.leaving("one", at: 1150, most: 10).count == 1)
  }

  @Test func oneThatComesBackWhileItLeavesStays() throws {
    let fixture = try Fixture()
    _ = try fixture.admit(1)
    let leaving = try fixture.store.leaving("one", at: 1100, most: 10)
    _ = try fixture.admit(1, now: 1100)
    try fixture.store.removeLeft(leaving)
    #expect(try fixture.store.wanted(on: "one", at: 1100).count == 1)
  }

  @Test(arguments: [
    ("10.0.0.1/8", true), ("10.0.0.1/30", true), ("10.0.0.0/24", false), ("10.0.0.255/24", false),
    ("10.0.0.1/31", false),
    ("10.0.0.1/7", false), ("fd00::1/64", false), ("10.0.0.1", false), ("", false),
  ])
  func networks(_ text: String, _ isRight: Bool) { #expect((TunnelNetwork(text) != nil) == isRight) }
}
