import KapeProtocols

/// What the program round an embedded tunnel has.
protocol EmbeddingHost {
  /// The next thing that happens, at the latest at `deadline` (nanoseconds of the boot clock; nil: no limit). nil: stop.
  func wait(until deadline: UInt64?) -> EmbeddingEvent?
  func send(_ datagram: RawSpan, to path: PacketPath?)
  func deliver(_ packet: RawSpan)
}

enum EmbeddingEvent {
  case packet([UInt8])
  case datagram([UInt8], from: SocketAddress)
  case deadline
}
