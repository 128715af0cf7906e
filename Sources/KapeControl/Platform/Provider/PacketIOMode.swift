/// How packets pass between the system and an engine.
public enum PacketIOMode: String, Codable, CaseIterable, Sendable {
  /// The engine reads and writes the interface's descriptor itself.
  case utunFd
  /// Packets go through the provider's `packetFlow`, one copy more each way.
  case packetFlow
}
