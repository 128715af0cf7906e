import KapeControl
import KapeProtocols
import Testing

@Suite struct NetworkPlanTests {
  private func prefixes(_ texts: [String]) throws -> [IPPrefix] { try texts.map { try #require(IPPrefix($0)) } }

  private func cover(_ included: [String], _ excluded: [String]) throws -> [String]? {
    IPPrefix.cover(try prefixes(included), without: try prefixes(excluded), limit: 100)?.map(\.description)
  }

  @Test func whatIsExcludedIsCutOut() throws {
    #expect(try cover(["10.0.0.0/8"], []) == ["10.0.0.0/8"])
    #expect(try cover(["10.0.0.0/8"], ["10.128.0.0/9"]) == ["10.0.0.0/9"])
    #expect(try cover(["10.0.0.0/30"], ["10.0.0.2/32"]) == ["10.0.0.0/31", "10.0.0.3/32"])
    #expect(try cover(["10.0.0.0/8"], ["10.0.0.0/8"]) == [])
    #expect(try cover(["::/0"], ["8000::/1"]) == ["::/1"])
    #expect(try cover(["fd00::/120"], ["fd00::7/128"])?.count == 8)
  }

  @Test func theLongestPrefixDecides() throws {
    #expect(try cover(["10.1.0.0/16"], ["10.0.0.0/8"]) == ["10.1.0.0/16"], "an exclusion around it means less")
    #expect(
      try cover(["0.0.0.0/1", "10.0.0.53/32"], ["0.0.0.0/2", "10.0.0.53/32"]) == ["64.0.0.0/2"], "both: excluded")
    #expect(
      try cover(["0.0.0.0/0", "10.0.0.243/32"], ["10.0.0.0/8"])?.contains("10.0.0.243/32") == true,
      "a resolver within the local network that is left out")
    #expect(try cover(["10.0.0.0/8", "10.1.0.0/16", "10.1.2.0/24"], []) == ["10.0.0.0/8"], "no more than needed")
    #expect(try cover(["10.0.0.0/8", "fd00::/8"], ["::/0"]) == ["10.0.0.0/8", "fd00::/8"])
  }

  @Test func anAddressIsInTheCoverIfItsLongestPrefixIsIncluded() throws {
    let included = try prefixes(["0.0.0.0/0", "10.1.0.0/16", "192.168.7.0/24", "172.16.5.5/32"])
    let excluded = try prefixes(["10.0.0.0/8", "192.168.0.0/16", "172.16.0.0/12", "192.168.7.128/25", "224.0.0.0/24"])
    let cover = try #require(IPPrefix.cover(included, without: excluded, limit: 1000))
    var state: UInt32 = 1
    for _ in 0..<2_000 {
      state = state &* 1_664_525 &+ 1_013_904_223
      // Half of them near what the lists name.
      let near: [UInt32] = [0x0A01_0000, 0xC0A8_0700, 0xAC10_0505, 0xE000_0000, 0x0A00_0000]
      let value = state & 1 == 0 ? state : near[Int(state >> 4) % near.count] ^ (state >> 16 & 0x1FF)
      let address = IPAddress(
        ipv4: UInt8(value >> 24), UInt8(value >> 16 & 255), UInt8(value >> 8 & 255), UInt8(value & 255))
      let longest = { (list: [IPPrefix]) in list.filter { $0.contains(address) }.map(\.length).max() ?? -1 }
      #expect(cover.contains { $0.contains(address) } == (longest(included) > longest(excluded)), "\(address)")
    }
    #expect(Set(cover).count == cover.count)
  }

  @Test func tooManyAreNotMade() throws {
    let holes = (0..<64).map { "10.0.\($0).7/32" }
    #expect(try cover(["0.0.0.0/0"], holes) == nil)
  }

  private func settings(_ included: [String], _ excluded: [String] = []) throws -> TunnelSettings {
    var settings = TunnelSettings()
    settings.addresses = [try #require(InterfaceAddress("10.77.0.2/24"))]
    settings.includedRoutes = try prefixes(included)
    settings.excludedRoutes = try prefixes(excluded)
    return settings
  }

  @Test func everythingGoesIntoTheTunnelsTable() throws {
    let plan = try #require(NetworkPlan(try settings(["0.0.0.0/0", "fd00::/8"]), others: try prefixes(["0.0.0.0/0"])))
    #expect(plan.tableRoutes.map(\.description) == ["0.0.0.0/0", "fd00::/8"])
    #expect(plan.mainRoutes == [])
    #expect(plan.families == [.ipv6, .ipv4])
    #expect(plan.mtu == 1500)
  }

  @Test func aRouteWithinAWiderOneOfTheMainTableGoesThereToo() throws {
    let others = try prefixes(["0.0.0.0/0", "10.0.0.0/8", "192.168.1.0/24"])
    let plan = try #require(
      NetworkPlan(try settings(["0.0.0.0/0", "10.0.0.243/32", "192.168.0.0/16"], ["10.0.0.0/8"]), others: others))
    #expect(plan.mainRoutes.map(\.description) == ["10.0.0.243/32"])
    #expect(plan.tableRoutes.contains { $0.description == "10.0.0.243/32" })
  }

  @Test func withoutRoutesThereAreNoRules() throws {
    let plan = try #require(NetworkPlan(try settings([]), others: []))
    #expect(plan.families == [])
    #expect(plan.addresses.map(\.description) == ["10.77.0.2/24"])
  }
}
