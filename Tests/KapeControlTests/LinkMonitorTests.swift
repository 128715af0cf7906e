import Glibc
import Testing

@testable import KapeControl

/// Netlink messages made by hand: length, type, flags, sequence, port; then family, kind, index, flags, change; then
/// attributes.
@Suite struct LinkMonitorTests {
  private static let newLink: UInt16 = 16
  private static let deleteLink: UInt16 = 17
  private static let mtuAttribute: UInt16 = 4

  private static func bytes(_ value: some FixedWidthInteger) -> [UInt8] { withUnsafeBytes(of: value) { Array($0) } }

  private static func message(
    type: UInt16, index: Int32, isUp: Bool = true, mtu: UInt32? = 1420, family: UInt8 = 0
  ) -> [UInt8] {
    var link: [UInt8] = [family, 0, 0, 0] + bytes(index) + bytes(UInt32(isUp ? 1 : 0)) + bytes(UInt32(0))
    // One that is to be passed over comes first, of odd length.
    link += bytes(UInt16(9)) + bytes(UInt16(3)) + [0x6B, 0x77, 0x67, 0x30, 0] + [0, 0, 0]
    if let mtu { link += bytes(UInt16(8)) + bytes(mtuAttribute) + bytes(mtu) }
    return bytes(UInt32(16 + link.count)) + bytes(type) + bytes(UInt16(0)) + bytes(UInt32(0)) + bytes(UInt32(0)) + link
  }

  private static func changes(_ datagram: [UInt8], index: UInt32 = 5) -> [LinkChange] {
    datagram.withUnsafeBytes { linkChanges(in: $0, index: index) }
  }

  @Test func flags_and_mtu_of_our_interface_are_read() {
    #expect(Self.changes(Self.message(type: Self.newLink, index: 5)) == [.state(LinkState(isUp: true, mtu: 1420))])
    #expect(
      Self.changes(Self.message(type: Self.newLink, index: 5, isUp: false, mtu: 9000))
        == [.state(LinkState(isUp: false, mtu: 9000))])
  }

  @Test func other_interfaces_are_passed_over() {
    let both = Self.message(type: Self.newLink, index: 4) + Self.message(type: Self.deleteLink, index: 5)
    #expect(Self.changes(both) == [.gone])
    #expect(Self.changes(Self.message(type: Self.deleteLink, index: 4)) == [])
  }

  @Test func a_port_that_leaves_a_bridge_is_not_a_deletion() {
    let bridge: UInt8 = 7
    #expect(Self.changes(Self.message(type: Self.deleteLink, index: 5, family: bridge)) == [])
  }

  @Test func an_answer_of_ENODEV_means_gone() {
    let error =
      Self.bytes(UInt32(36)) + Self.bytes(UInt16(2)) + [UInt8](repeating: 0, count: 10) + Self.bytes(-ENODEV)
      + [UInt8](repeating: 0, count: 16)
    #expect(Self.changes(error) == [.gone])
  }

  @Test func every_way_of_cutting_a_datagram_short_is_harmless() {
    let whole = Self.message(type: Self.newLink, index: 5) + Self.message(type: Self.deleteLink, index: 5)
    for size in 0..<whole.count {
      #expect(Self.changes(Array(whole[..<size])).count <= 2)
    }
    #expect(Self.changes(whole).count == 2)
  }

  @Test func lengths_that_lie_are_harmless() {
    let whole = Self.message(type: Self.newLink, index: 5)
    for offset in [0, 32, 44] {
      for lie: UInt8 in [0, 1, 3, 15, 17, 255] {
        var datagram = whole
        datagram[offset] = lie
        #expect(Self.changes(datagram).count <= 1)
      }
    }
  }
}
