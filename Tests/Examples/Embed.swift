import KapeProtocols

/// A WireGuard tunnel in a program that has packets and sockets of its own (`EmbeddingHost` is that program).
func embed(_ file: String, in host: some EmbeddingHost) throws {
  let pool = try PacketPool()
  var batch = PacketBatch(pool: pool)
  var output = try EngineOutput(pool: pool)
  var tunnel = try WireGuardEngine(now: .now())
  try tunnel.apply(WireGuardConfiguration.parse(file).get().change(), into: &output, now: .now())
  while true {
    output.forEachWirePacket { bytes, attributes in host.send(bytes, to: attributes.path) }
    output.forEachInsidePacket { bytes in host.deliver(bytes) }
    output.removeAll()
    tunnel.endRound(now: .now())
    switch host.wait(until: tunnel.deadline) {
    case .packet(let bytes):  // from the host: to be sealed
      batch.append(copying: bytes.span.bytes, room: tunnel.room)
      tunnel.inside(&batch, into: &output, now: .now())
    case .datagram(let bytes, let sender):  // from the network: to be opened
      batch.append(copying: bytes.span.bytes, attributes: .init(path: .init(remote: sender)))
      tunnel.outside(&batch, into: &output, now: .now())
    case .deadline: tunnel.tick(into: &output, now: .now())
    case nil: return
    }
  }
}
