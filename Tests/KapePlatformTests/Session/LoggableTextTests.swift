import Foundation
import KapePlatform
import KapeProtocols
import Testing

@Suite struct LoggableTextTests {
  @Test(
    "public addresses are hidden, those that tell nothing stay",
    arguments: [
      ("to 203.0.113.9:51820.", "to <redacted>:51820."), ("[2001:db8::1]:443 refused", "[<redacted>]:443 refused"),
      ("at 8.8.8.8, then 2001:4860::8888.", "at <redacted>, then <redacted>."),
      ("10.5.6.7 100.64.100.2 127.0.0.1 169.254.1.1 172.31.0.1 192.168.1.1 0.0.0.0 ::1 :: fc00::1 fe80::1", nil),
      ("172.32.0.1 100.128.0.1", "<redacted> <redacted>"), ("version 1.2.3, at 12:30:05, deadbeef, abc:", nil),
      ("", nil),
    ] as [(String, String?)])
  func publicAddresses(text: String, hidden: String?) {
    #expect(Redaction.hidingPublicAddresses(in: text) == hidden ?? text)
  }

  @Test func oneShortLineWithoutKeys() {
    let key = String(repeating: "a", count: 43) + "="
    #expect(loggable("key \(key)\nsecond\u{1B}[2J\u{202E}") == "key (hidden) second [2J ")
    #expect(loggable(String(repeating: "x", count: 5000)).count == 301)
  }

  @Test func errorsByTheirOwnText() {
    struct Plain: Error {}
    struct Described: LocalizedError { var errorDescription: String? { "no route to 198.51.100.7" } }
    #expect(loggable(PacketTunnelError.network("x")) == "network: x")
    #expect(loggable(Described()) == "no route to <redacted>")
    #expect(loggable(Plain()) == "Plain()")
  }
}
