/// An IP address as text, of a known family. The text is not checked.
public enum IpAddress: Hashable, Codable, Sendable {
  case v4(ipV4: String)
  case v6(ipV6: String)

  /// IPv6 when there is a colon in it.
  public init(_ text: String) {
    self = text.contains(":") ? .v6(ipV6: text) : .v4(ipV4: text)
  }
}

extension IpAddress: CustomStringConvertible {
  public var description: String {
    switch self {
    case .v4(let text), .v6(let text): text
    }
  }
}
