import KapeProtocols

/// The IPv4 network of a server's tunnel: the server's own address, and those that peers can have.
struct TunnelNetwork: Sendable, Equatable {
  /// As a number.
  var server: UInt32
  var prefixLength: Int

  init(server: UInt32, prefixLength: Int) {
    self.server = server
    self.prefixLength = prefixLength
  }

  /// "10.64.0.1/16": 8 to 30 bits, and an address that is neither the network's first nor its last.
  init?(_ text: String) {
    guard let parsed = InterfaceAddress(text), parsed.address.family == .ipv4, (8...30).contains(parsed.prefixLength)
    else { return nil }
    server = parsed.address.withUnsafeBytes { $0.reduce(0) { $0 << 8 | UInt32($1) } }
    prefixLength = parsed.prefixLength
    guard server != first, server != last else { return nil }
  }

  private var hostMask: UInt32 { .max >> UInt32(prefixLength) }
  private var first: UInt32 { server & ~hostMask }
  private var last: UInt32 { server | hostMask }

  func isPeers(_ address: UInt32) -> Bool {
    address & ~hostMask == first && address != first && address != last && address != server
  }

  /// The next after `address` that a peer can have, the first after the last.
  func next(after address: UInt32) -> UInt32 {
    var next = address
    repeat {
      next = next < first || next >= last ? first : next + 1
    } while !isPeers(next)
    return next
  }

  /// How many peers there can be.
  var capacity: Int { Int(hostMask) - 2 }

  static func text(_ address: UInt32) -> String {
    [24, 16, 8, 0].map { String(address >> $0 & 255) }.joined(separator: ".")
  }

  var serverText: String { Self.text(server) }
}
