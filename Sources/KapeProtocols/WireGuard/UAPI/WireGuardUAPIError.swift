/// The error numbers of the configuration protocol: Linux's errno, negative; 0 is success.
public struct WireGuardUAPIError: Error, Hashable, Sendable, CustomStringConvertible {
  /// 0 or negative, as it is written after `errno=`.
  public let code: Int32

  /// From a Linux errno, of either sign.
  public init(errno: Int32) {
    code = errno == .min ? .min : -abs(errno)
  }

  public static let none = WireGuardUAPIError(errno: 0)
  /// EIO: a line is too long.
  public static let io = WireGuardUAPIError(errno: 5)
  /// ENOMEM.
  public static let noMemory = WireGuardUAPIError(errno: 12)
  /// EINVAL: an unknown key, or a value that it cannot have.
  public static let invalid = WireGuardUAPIError(errno: 22)
  /// ENOANO: anything else, as wireguard-go has it.
  public static let unknown = WireGuardUAPIError(errno: 55)
  /// EPROTO: a line without '='.
  public static let malformed = WireGuardUAPIError(errno: 71)
  /// EADDRINUSE: the listen port is taken.
  public static let portInUse = WireGuardUAPIError(errno: 98)

  public var description: String { "errno=\(code)" }
}
