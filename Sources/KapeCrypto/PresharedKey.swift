/// A 32-byte symmetric key that both ends know.
public typealias PresharedKey = SecretKey<PresharedKeyUse>

public enum PresharedKeyUse: SecretKeyUse {
  public static var name: String { "PresharedKey" }
  public static func shape(_ bytes: UnsafeMutableRawBufferPointer) {}
}
