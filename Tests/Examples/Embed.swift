import KapeProtocols

/// A WireGuard tunnel in a program that has packets and sockets of its own (`EmbeddingHost` is that program).
func embed(_ file: String, in host: some EmbeddingHost) throws {
  var tunnel = try EmbeddedTunnel(WireGuardEngine(now: .now()))
  try tunnel.apply(WireGuardConfiguration.parse(file).get().change(), now: .now())
  while true {
    tunnel.run(now: .now(), send: { host.send($0, to: $1.path) }, deliver: { host.deliver($0) })
    switch host.wait(until: tunnel.deadline) {
    case .packet(let bytes): tunnel.inside(bytes.span.bytes)  // from the host: to be sealed
    case .datagram(let bytes, let sender): tunnel.outside(bytes.span.bytes, from: sender)  // to be opened
    case .deadline: continue
    case nil: return
    }
  }
}
