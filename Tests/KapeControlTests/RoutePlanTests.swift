import KapeProtocols
import Testing

@testable import KapeControl

private func prefixes(_ texts: [String]) throws -> [IPPrefix] {
  try texts.map { try #require(IPPrefix($0), "\($0)") }
}

@Suite struct RoutePlanTests {
  struct Case: Sendable, CustomTestStringConvertible {
    var name: String
    var allowed: [String]
    var table = RoutePlan.Table.automatic
    var present: [String] = []
    var routes: [String]
    var routeTable = Route.mainTable
    var full: [IPAddress.Family] = []
    var testDescription: String { name }
  }

  static let cases = [
    Case(name: "nothing allowed, no route", allowed: [], routes: []),
    Case(
      name: "the most specific first, ties as in the file",
      allowed: ["10.0.0.0/8", "10.1.0.0/16", "fd00::/16", "10.2.0.0/16"],
      routes: ["10.1.0.0/16", "fd00::/16", "10.2.0.0/16", "10.0.0.0/8"]),
    Case(
      name: "what the address's own network covers needs no route",
      allowed: ["10.77.0.2/32", "10.77.0.0/16", "fd77::2/128"],
      present: ["10.77.0.0/24", "fd77::/64", "fe80::/64"], routes: ["10.77.0.0/16"]),
    Case(name: "the same network is covered too", allowed: ["10.77.0.0/24"], present: ["10.77.0.0/24"], routes: []),
    Case(
      name: "default routes go elsewhere", allowed: ["0.0.0.0/0", "192.0.2.0/24", "::/0"], routes: ["192.0.2.0/24"],
      full: [.ipv6, .ipv4]),
    Case(name: "one family is one family", allowed: ["0.0.0.0/0"], routes: [], full: [.ipv4]),
    Case(
      name: "halves are no default route", allowed: ["0.0.0.0/1", "128.0.0.0/1"], routes: ["0.0.0.0/1", "128.0.0.0/1"]),
    Case(name: "off is off, default routes too", allowed: ["0.0.0.0/0", "10.0.0.0/8"], table: .off, routes: []),
    Case(
      name: "a table of the user's takes everything, what is covered too",
      allowed: ["0.0.0.0/0", "10.77.0.2/32", "::/0"],
      table: .number(1234), present: ["10.77.0.0/24"], routes: ["10.77.0.2/32", "0.0.0.0/0", "::/0"], routeTable: 1234),
  ]

  @Test(arguments: cases) func routesFollowAllowedIPs(_ it: Case) throws {
    let plan = try RoutePlan(prefixes(it.allowed), table: it.table, present: prefixes(it.present), interface: 7)
    #expect(plan.routes == (try prefixes(it.routes).map { Route($0, table: it.routeTable, interface: 7) }))
    #expect(plan.fullTunnels == it.full)
  }

  @Test func aFullTunnelHasTwoRules() {
    let rules = PolicyRule.fullTunnel(.ipv6, table: 51821)
    #expect(rules.count == 2)
    #expect(rules[0].table == 51821 && rules[0].mark == 51821 && rules[0].isInverted)
    #expect(rules[1].table == Route.mainTable && rules[1].suppressPrefixLength == 0 && rules[1].mark == nil)
  }

  @Test(
    arguments: [
      ([], 0), ([0], 0), ([0, 32766, 32767], 32765), ([0, 32764, 32765], 32763), ([0, 1], 0), ([0, 0, 100], 0),
    ] as [([UInt32], UInt32)])
  func aRuleGetsThePriorityThatTheKernelWouldGive(_ present: [UInt32], _ expected: UInt32) {
    let rules = present.map { priority in
      var rule = PolicyRule(family: .ipv4, table: 254)
      rule.priority = priority
      return rule
    }
    #expect(PolicyRule.nextPriority(before: rules) == expected)
  }

  @Test(
    arguments: [
      ([1500], nil, 1420), ([1500, 9000], 1500, 8920), ([], 1400, 1320), ([], nil, 1420), ([0], 1280, 1200),
      ([65536], nil, 65456),
      ([], 60, 60),
    ] as [([UInt32], UInt32?, UInt32)])
  func theMTUIsThatOfTheLargestRouteLessTheOverhead(_ endpoints: [UInt32], _ defaultRoute: UInt32?, _ expected: UInt32)
  {
    #expect(InterfaceMTU.choose(endpoints: endpoints, defaultRoute: defaultRoute) == expected)
  }
}

@Suite struct ConfigurationFileTests {
  @Test(
    arguments: [
      ("wg0", ["/etc/wireguard/wg0.conf"], "/etc/wireguard/wg0.conf", "wg0"),
      ("wg0", ["/etc/wireguard/wg0.conf", "wg0"], "/etc/wireguard/wg0.conf", "wg0"),
      ("./wg0.conf", ["./wg0.conf"], "/abs/./wg0.conf", "wg0"),
      ("home.conf", ["home.conf"], "/abs/home.conf", "home"),
      (
        "/tmp/a-name-of-more-than-15.conf", ["/tmp/a-name-of-more-than-15.conf"],
        "/abs//tmp/a-name-of-more-than-15.conf", "a-name-of-more-"
      ),
      ("/tmp/a.b.conf", ["/tmp/a.b.conf"], "/abs//tmp/a.b.conf", "a.b"),
      ("/tmp/noending", ["/tmp/noending"], "/abs//tmp/noending", "noending"),
    ] as [(String, [String], String, String)])
  func aNameOrAPathLeadsToAFile(_ argument: String, _ files: [String], _ path: String, _ interface: String) throws {
    let file = try ConfigurationFile(argument, exists: { files.contains($0) }, absolute: { "/abs/" + $0 })
    #expect(file.path == path)
    #expect(file.interface == interface)
    #expect(file.isNameCut == (interface == "a-name-of-more-"))
  }

  @Test(arguments: ["wg1", "/tmp/absent.conf"])
  func whatIsNotThereIsNamed(_ argument: String) {
    #expect(throws: ConfigurationFile.NotFound.self) { try ConfigurationFile(argument, exists: { _ in false }) }
  }

  @Test(arguments: ["/tmp/a b.conf", "/tmp/ü.conf", "/tmp/", "/tmp/a:b.conf", "/tmp/$(x).conf"])
  func namesThatNoInterfaceCanHaveAreRefused(_ path: String) {
    #expect(throws: ConfigurationFile.NotFound.self) {
      try ConfigurationFile(path, exists: { _ in true }, absolute: { $0 })
    }
  }
}
