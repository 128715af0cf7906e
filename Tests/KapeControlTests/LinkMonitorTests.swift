import Glibc
import Testing

@testable import KapeControl

/// What changes while it is followed: Tests/Interop/kape-wg.
@Suite struct LinkMonitorTests {
  @Test func thePresentStateIsTold() throws {
    let loopback = if_nametoindex("lo")
    try #require(loopback != 0)
    guard case .state(let state) = try LinkMonitor(index: loopback).present() else {
      Issue.record("lo is gone")
      return
    }
    #expect(state.mtu > 0)
  }

  @Test func anInterfaceThatIsNotThereIsGone() throws {
    #expect(try LinkMonitor(index: 0x7FFF_FFF0).present() == .gone)
  }
}
