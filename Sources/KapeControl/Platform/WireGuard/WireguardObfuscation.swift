/// What hides WireGuard on the wire.
public enum WireguardObfuscation: Hashable, Sendable {
  case none
  case amnezia(AmneziaParameters)
  /// One that this version does not know.
  case unknown

  /// Junk before handshakes, and message types of one's own in place of WireGuard's.
  public struct AmneziaParameters: Hashable, Codable, Sendable {
    public var initPacketJunkSize: Int
    public var responsePacketJunkSize: Int
    public var junkPacketCount: Int
    public var junkPacketMinSize: Int
    public var junkPacketMaxSize: Int
    public var initPacketMagicHeader: UInt32
    public var responsePacketMagicHeader: UInt32
    public var underloadPacketMagicHeader: UInt32
    public var transportPacketMagicHeader: UInt32

    public init(
      initPacketJunkSize: Int, responsePacketJunkSize: Int, junkPacketCount: Int, junkPacketMinSize: Int,
      junkPacketMaxSize: Int, initPacketMagicHeader: UInt32, responsePacketMagicHeader: UInt32,
      underloadPacketMagicHeader: UInt32, transportPacketMagicHeader: UInt32
    ) {
      self.initPacketJunkSize = initPacketJunkSize
      self.responsePacketJunkSize = responsePacketJunkSize
      self.junkPacketCount = junkPacketCount
      self.junkPacketMinSize = junkPacketMinSize
      self.junkPacketMaxSize = junkPacketMaxSize
      self.initPacketMagicHeader = initPacketMagicHeader
      self.responsePacketMagicHeader = responsePacketMagicHeader
      self.underloadPacketMagicHeader = underloadPacketMagicHeader
      self.transportPacketMagicHeader = transportPacketMagicHeader
    }
  }
}
