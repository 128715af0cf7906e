import Foundation
import Testing

@testable import KapePlatform

@Suite("What discovery answered, kept") struct DiscoveryCacheTests {
  private let folder: ScratchFolder
  private let container: SharedContainer
  private let now = Date(timeIntervalSince1970: 1_700_000_000)

  init() throws {
    let made = try ScratchFolder()
    folder = made
    container = try SharedContainer(group: "g", home: nil) { $0 == "KAPE_STATE_HOME" ? made.path : nil }
  }

  private func key(
    _ location: String = "fr", _ protocols: Set<DiscoveryProtocol> = [.wireguard], source: String = "a"
  ) -> DiscoveryCache.Key {
    DiscoveryCache.Key(source: source, locationId: location, protocols: protocols)
  }

  private func entry(
    _ key: DiscoveryCache.Key, age: TimeInterval = 0, maxAge: Int? = nil
  ) throws -> DiscoveryCache.Entry {
    DiscoveryCache.Entry(
      key: key, fetchedAt: now - age, maxAgeSeconds: maxAge, endpoints: [try Sample.wireGuard("192.0.2.1")],
      latenciesMs: ["192.0.2.1": 12.5, "nowhere": 1, "192.0.2.2": -1])
  }

  @Test("§5.5: an answer is good for an hour, for less when it says so, never for more, and not from the future")
  func age() throws {
    func isFresh(_ age: TimeInterval, maxAge: Int? = nil) throws -> Bool {
      try entry(key(), age: age, maxAge: maxAge).isFresh(at: now)
    }
    #expect(try isFresh(0) && isFresh(3599) && !isFresh(3600))
    #expect(try isFresh(59, maxAge: 60) && !isFresh(60, maxAge: 60))
    #expect(try !isFresh(3600, maxAge: 86_400) && !isFresh(0, maxAge: 0))
    #expect(try !isFresh(-1))
  }

  @Test("one answer for each backend, location and choice of protocols; the latest 16")
  func keys() throws {
    var cache = DiscoveryCache()
    let keys = [
      key(), key("de"), key("fr", [.wireguard, .openvpn]), key(source: "b"), key("fr", [.openvpn, .wireguard]),
    ]
    for key in keys { cache.insert(try entry(key)) }
    #expect(cache.entries.count == 4)
    for key in keys { #expect(cache[key]?.key == key) }
    #expect(cache[key("at")] == nil)
    for number in 0..<20 { cache.insert(try entry(key("\(number)"))) }
    #expect(cache.entries.map(\.key.locationId) == (4..<20).reversed().map { "\($0)" })
  }

  @Test("what was written is read again; the file is for the owner alone; what is no latency is passed over")
  func file() throws {
    #expect(try DiscoveryCache.load(container) == DiscoveryCache())
    var cache = DiscoveryCache()
    cache.insert(try entry(key()))
    try cache.save(container)
    #expect(try DiscoveryCache.load(container) == cache)
    #expect(cache[key()]?.latencies == [try address("192.0.2.1"): .microseconds(12_500)])
    #expect(try folder.mode("g/endpoints.json") == 0o600)
  }

  @Test("a file that is none is said; an entry that cannot be read is passed over")
  func corrupt() throws {
    for text in ["", "{}", "null", "[{"] {
      try folder.write("g/endpoints.json", text)
      #expect(throws: (any Error).self, "\(text)") { try DiscoveryCache.load(container) }
    }
    var cache = DiscoveryCache()
    cache.insert(try entry(key()))
    try cache.save(container)
    let good = try String(contentsOfFile: container.endpoints, encoding: .utf8)
    try folder.write("g/endpoints.json", "[7, {}, " + good.dropFirst())
    #expect(try DiscoveryCache.load(container) == cache)
    try folder.write("g/endpoints.json", good.replacingOccurrences(of: "1337", with: "0"))
    #expect(try DiscoveryCache.load(container) == DiscoveryCache())
  }
}
