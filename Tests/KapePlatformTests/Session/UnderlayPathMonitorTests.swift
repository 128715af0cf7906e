import KapePlatform
import Testing

@Suite struct UnderlayPathMonitorTests {
  @Test("What it tells first is the path as it is; the loopback interface is none")
  func present() async throws {
    let monitor = UnderlayPathMonitor(logger: SilentLogger())
    let present = try monitor.present()
    for route in [present.ipv4, present.ipv6] { #expect(route?.interface != "lo") }
    for await path in monitor.paths() {
      #expect(path == present)
      break
    }
  }

  @Test("An interface that is said to be the tunnel's is no path")
  func tunnel() throws {
    let monitor = UnderlayPathMonitor(logger: SilentLogger())
    guard let interface = try monitor.present().ipv4?.interface else { return }
    #expect(try UnderlayPathMonitor(tunnel: interface, logger: SilentLogger()).present().ipv4?.interface != interface)
  }
}
