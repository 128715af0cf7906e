/// The reader of wg-quick files on any bytes. What it accepts must survive being written and read again, and being
/// stripped for `wg`; what it says must point into the file and hold no key.

import KapeCrypto
import KapeProtocols

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzConfiguration(_ start: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
  // A copy that ends where the input ends, so that the sanitizer sees a step past it.
  let bytes = Array(UnsafeBufferPointer(start: start, count: size))
  let parsed = WireGuardConfiguration.parse(bytes.span.bytes, file: "f.conf")
  check(parsed.diagnostics, lines: bytes.count { $0 == UInt8(ascii: "\n") } + 1)
  let hasError = parsed.diagnostics.contains { $0.severity == .error }
  precondition((parsed.configuration == nil) == hasError, "refused without a reason, or accepted with an error")
  _ = ConfigurationKind.detect(bytes.span.bytes)
  if let configuration = parsed.configuration { check(configuration, bytes) }
  return 0
}

private func check(_ configuration: WireGuardConfiguration, _ bytes: [UInt8]) {
  var written = SecretBuffer()
  configuration.write(.wgQuick, to: &written)
  let again = written.withBytes { WireGuardConfiguration.parse($0).configuration }
  precondition(again == configuration, "written and read again it is another")

  // What wg sees: of the whole, of what is written for it, of the stripped file.
  var forWg = configuration
  forWg.interface = WireGuardConfiguration.Interface()
  forWg.interface.privateKey = configuration.interface.privateKey
  forWg.interface.listenPort = configuration.interface.listenPort
  forWg.interface.firewallMark = configuration.interface.firewallMark
  written.removeAll()
  configuration.write(.wg, to: &written)
  precondition(written.withBytes { WireGuardConfiguration.parse($0).configuration } == forWg, "for wg it is another")
  written.removeAll()
  WireGuardConfiguration.strip(bytes.span.bytes, to: &written)
  precondition(written.withBytes { WireGuardConfiguration.parse($0).configuration } == forWg, "stripped it is another")

  for family in [IPAddress.Family.ipv4, .ipv6] { _ = configuration.isFullTunnel(family) }
  let change = configuration.change { $0.socketAddress { _ in 3 } }
  precondition(change.peers.count == configuration.peers.count && change.replacePeers)
}

private func check(_ diagnostics: [Diagnostic], lines: Int) {
  for diagnostic in diagnostics {
    if let line = diagnostic.line { precondition((1...lines).contains(line), "a line that is not there") }
    precondition(!diagnostic.reason.isEmpty)
    precondition(!holdsKey(diagnostic.description), "a diagnostic shows a key: \(diagnostic)")
  }
}

/// 43 or more letters of base64 and '=' behind them: what a key looks like.
private func holdsKey(_ text: String) -> Bool {
  var run = 0
  for byte in text.utf8 {
    switch byte {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "/"):
      run += 1
    case UInt8(ascii: "=") where run == 43: return true
    default: run = 0
    }
  }
  return false
}
