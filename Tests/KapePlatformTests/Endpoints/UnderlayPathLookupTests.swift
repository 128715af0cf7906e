import KapeProtocols
import Testing

@testable import KapeControl
@testable import KapePlatform

@Suite("NAT64 of the network at hand") struct UnderlayPathLookupTests {
  private let time = ManualTime()
  private let path = Changing(NetworkPath(ipv4: .init(interface: "eth0"), ipv6: .init(interface: "eth0")))
  private let answers = Changing<Result<[IPAddress], UnderlayResolver.Failure>>(.success([]))
  private let questions = Changing(0)

  private func lookup() -> UnderlayPathLookup {
    UnderlayPathLookup(
      clock: time, logger: LogLines(), present: { [path] in path.value },
      lookUp: { [answers, questions] in
        questions.value += 1
        return try answers.value.get()
      })
  }

  private let prefix = IPPrefix("2001:db8:64::/96").flatMap { NAT64Prefix($0) }

  @Test("with IPv4 nobody is asked")
  func dualStack() async {
    #expect(await lookup().path() == UnderlayPath(hasIPv4: true, hasIPv6: true))
    path.value.ipv6 = nil
    #expect(await lookup().path() == UnderlayPath(hasIPv4: true, hasIPv6: false))
    #expect(questions.value == 0)
  }

  @Test("without, the prefix is asked for once a path, and not kept across paths")
  func once() async throws {
    path.value.ipv4 = nil
    answers.value = .success([try address("2001:db8:64::192.0.0.170")])
    let lookup = lookup()
    for _ in 0..<3 {
      #expect(await lookup.path() == UnderlayPath(hasIPv4: false, hasIPv6: true, nat64: prefix))
    }
    #expect(questions.value == 1 && prefix != nil)
    path.value.ipv6 = .init(interface: "wlan0")
    answers.value = .success([])
    #expect(await lookup.path() == UnderlayPath(hasIPv4: false, hasIPv6: true))
    #expect(questions.value == 2)
  }

  @Test("no such name is no NAT64; where nobody answers, the well-known prefix is tried and the question put again")
  func failures() async throws {
    path.value.ipv4 = nil
    let lookup = lookup()
    answers.value = .failure(.init(name: "", reason: "no route"))
    let wellKnown = try #require(IPPrefix("64:ff9b::/96"))
    #expect(await lookup.path().nat64 == NAT64Prefix(wellKnown))
    answers.value = .failure(.init(name: "", reason: "no such name", isFinal: true))
    #expect(await lookup.path().nat64 == nil)
    #expect(await lookup.path().nat64 == nil)
    #expect(questions.value == 2)
  }

  @Test("resolvers that do not answer hold a start up for three seconds at most")
  func slow() async throws {
    path.value.ipv4 = nil
    let (asked, ask) = AsyncStream.makeStream(of: Void.self)
    let lookup = UnderlayPathLookup(
      clock: time, logger: LogLines(), present: { [path] in path.value },
      lookUp: {
        ask.yield()
        try await Task.sleep(for: .seconds(3600))
        return []
      })
    let task = Task { await lookup.path() }
    for await _ in asked { break }
    while time.timers == 0 { await Task.yield() }
    time.advance(by: .seconds(3))
    #expect(await task.value.nat64 != nil)
  }

  @Test("offline, or when the network cannot be looked at, nothing is said of it")
  func unknown() async {
    path.value = NetworkPath()
    #expect(await lookup().path() == .unknown)
    let blind = UnderlayPathLookup(
      clock: time, logger: LogLines(), present: { throw SystemError("netlink", code: 1) }, lookUp: { [] })
    #expect(await blind.path() == .unknown)
  }
}
